"""The Orrery trajectory file: layout arithmetic, checksums, a strict reader, a writer, the checker."""
