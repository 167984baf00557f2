"""``python -m trajconform``: the command line of the interpreter at hand."""

from trajconform.cli import main

if __name__ == "__main__":
    main()
