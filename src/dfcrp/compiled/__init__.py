"""What all compiled code stands on: how it is compiled, and the state of a chain."""
