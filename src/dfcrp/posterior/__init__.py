"""From draws to answers: convergence, consensus, the point partition, catalogue, experts."""
