"""The priors over partitions by themselves: probabilities, enumeration, simulation.

Users know ``dfcrp`` as ``dfcrp.prior`` and ``crp`` as ``dfcrp.crp``.
"""
