"""The paper's published figures as data, by the table or section they stand in."""

from __future__ import annotations

from dataclasses import dataclass

#: Columns of "Posterior mean adjusted Rand index (ARI) summaries" (tab:randindex).
ARI_COLUMNS = ("min", "q25", "mean", "q75", "max")
#: tab:randindex, over 500 simulated data sets; "~ 1" is given as 1.
ARI: dict[str, tuple[float, float, float, float, float]] = {
    "dfcrp": (0.890, 0.988, 0.989, 0.999, 1.0),
    "dfcrp_radius": (0.884, 0.986, 0.989, 0.999, 1.0),
    "crp": (0.736, 0.944, 0.958, 0.985, 0.999),
    "difference": (-0.005, 0.010, 0.031, 0.047, 0.176),
}
SIMULATION_DATASETS = 500
SIMULATION_SCANS = 10_000
SIMULATION_BURN_IN = 2_000
#: Section 7: data sets in which the DFCRP's ARI exceeds the CRP's.
DFCRP_WINS = 493
#: Section 7: mean share of the CRP's clusters that hold an expert twice.
CRP_BREAKING_SHARE = 0.054
#: tab:clustercounts: mean number of clusters with at least 1 .. 6 members.
CLUSTER_COUNTS: dict[str, tuple[float, ...]] = {
    "dfcrp": (42.411, 30.500, 30.009, 29.831, 28.056, 19.194),
    "dfcrp_radius": (42.400, 30.500, 30.009, 29.833, 28.063, 19.196),
    "crp": (40.473, 29.663, 29.256, 29.091, 27.441, 19.246),
}
TRUE_CLUSTERS = 30

#: Section 6.1 and its figure (fig:grplot), on the reduced data set.
REDUCED_WINDOW = {"x": (1700.0, 2400.0), "y": (-300.0, 0.0)}
RADIUS_CLEAN_PX = 30.0
RADIUS_ADOPTED_PX = 75.0
RADIUS_WIDEST_CLUSTER_PX = 70.0
#: Hours for 10,000 scans at a radius of 70 px and at 600 px or more.
RADIUS_HOURS = {70.0: 2.0, 600.0: 6.5}

#: Supplement B.3 (tab:permmod): proportions of the 21 partitions, two experts with 2 and 4 items.
PRIOR_EMPIRICAL = (
    0.072, 0.063, 0.064, 0.029, 0.060, 0.065, 0.057, 0.030, 0.058, 0.062, 0.061,
    0.027, 0.061, 0.063, 0.066, 0.033, 0.030, 0.026, 0.028, 0.027, 0.017,
)  # fmt: skip
PRIOR_THEORETICAL = (
    0.062, 0.062, 0.062, 0.030, 0.062, 0.062, 0.062, 0.030, 0.062, 0.062, 0.062,
    0.030, 0.062, 0.062, 0.062, 0.030, 0.030, 0.030, 0.030, 0.030, 0.015,
)  # fmt: skip
PRIOR_P_VALUE = 0.2398
PRIOR_FAMILIES = (2, 4)
PRIOR_SCANS = 50_000
PRIOR_THIN = 10

#: Supplement B.3: minutes to an effective sample size of 5 of the mean index in the first half of
#: the order, mean over 30 chains.
MIXING_ESS = 5.0
MIXING_CHAINS = 30
MIXING_MINUTES = {"unmodified": 173.8, "paper": 18.7}
MIXING_SPEEDUP = 9.3


@dataclass(frozen=True)
class ConsensusRow:
    """A row of tab:fullimagesummary."""

    size_class: str
    min_experts: int
    dbscan: int
    mean: float
    lo: float
    hi: float


#: tab:fullimagesummary.
CONSENSUS = (
    ConsensusRow("small", 4, 795, 809.62, 803, 816),
    ConsensusRow("small", 5, 754, 742.81, 737, 749),
    ConsensusRow("small", 6, 714, 684.27, 679, 690),
    ConsensusRow("medium", 4, 101, 98.98, 92, 106),
    ConsensusRow("medium", 5, 94, 92.41, 86, 99),
    ConsensusRow("medium", 6, 87, 85.46, 80, 91),
    ConsensusRow("large", 4, 47, 46.48, 44, 49),
    ConsensusRow("large", 5, 41, 40.76, 38, 43),
    ConsensusRow("large", 6, 35, 34.81, 33, 37),
)
HIGHLANDS_MARKINGS = 9_517
HIGHLANDS_RADIUS_PX = 75.0
HIGHLANDS_MIN_DIAMETER_PX = 18.0
HIGHLANDS_CHAINS = 200
HIGHLANDS_SCANS = 10_000
HIGHLANDS_BURN_IN = 5_000
#: Section 8: small consensus clusters over all draws, and small markings over the experts.
SMALL_DRAWS_RANGE = (731, 755)
SMALL_EXPERTS_RANGE = (530, 1025)


@dataclass(frozen=True)
class ExpertRow:
    """A row of tab:expert; percentages with their 95 % intervals."""

    letter: str
    count: int
    jaccard: float
    size_1: tuple[float, float, float]
    size_10: tuple[float, float, float]


#: tab:expert.
EXPERTS = (
    ExpertRow("A", 636, 0.62, (0.422, 0.256, 0.521), (13.480, 13.274, 13.636)),
    ExpertRow("J", 652, 0.59, (0.777, 0.763, 0.785), (37.693, 36.937, 38.182)),
    ExpertRow("C", 653, 0.62, (1.018, 0.769, 1.295), (13.547, 13.393, 14.286)),
    ExpertRow("F", 808, 0.63, (2.601, 2.308, 3.101), (18.225, 17.857, 18.919)),
    ExpertRow("E", 814, 0.66, (1.332, 1.276, 1.554), (5.393, 5.310, 5.455)),
    ExpertRow("G", 831, 0.65, (1.565, 1.527, 1.809), (5.371, 4.545, 5.455)),
    ExpertRow("K", 930, 0.64, (7.834, 7.494, 8.226), (2.697, 2.655, 2.727)),
    ExpertRow("B", 945, 0.63, (14.702, 14.433, 14.948), (0.900, 0.885, 0.909)),
    ExpertRow("I", 991, 0.64, (10.252, 10.000, 10.513), (0.899, 0.885, 0.909)),
    ExpertRow("H", 1060, 0.64, (10.180, 9.819, 10.513), (0.000, 0.000, 0.000)),
    ExpertRow("D", 1197, 0.56, (49.317, 48.843, 49.742), (1.797, 1.770, 1.818)),
)
#: The lists behind the paper's letters, as the markings file names them; the number of markings
#: of each list agrees.
EXPERT_NAMES = {
    "A": "Antonenko1",
    "B": "Antonenko2",
    "C": "Antonenko3",
    "D": "Chapman",
    "E": "Fassett",
    "F": "Herrick",
    "G": "Kirchoff",
    "H": "Robbins1",
    "I": "Robbins2",
    "J": "Singer",
    "K": "Zanetti",
}
#: R14's own result stands among the observers of the file, under this name.
CONSENSUS_OBSERVER = "Concensus"
#: Section 4.2: share of order proposals accepted on the full image.
ORDER_ACCEPTANCE = 0.335
