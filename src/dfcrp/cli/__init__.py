"""The commands, one file each; every one is a thin call of the library."""
