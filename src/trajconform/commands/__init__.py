"""The commands of the command line, one module each; a module's click command is named ``command``."""
