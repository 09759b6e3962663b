"""The paper's studies and the checks of the samplers, each as one command."""
