"""The command line: each command a thin call of one library function."""
