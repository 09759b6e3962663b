"""Settings of the detection prior."""

from __future__ import annotations

from dataclasses import dataclass

from dfcrp.errors import check, check_choice

#: ``size_weight``, ``false_shape_sd`` and ``look_shape_sd`` where they are learned, unless the
#: settings say otherwise.
LEARNED_SIZES = 20.0
LEARNED_SPREAD = 1.0
LEARNED_CLUMPS = 1.0
LEARNED_IMAGES = 0.5


@dataclass(frozen=True)
class DetectionSettings:
    """What ``run.prior = "detection"`` assumes of objects and experts before seeing the data."""

    #: Classes of objects that are found more and less easily: 1 to 4, at most. "auto": as many as
    #: the number of experts allows to tell apart. Those that are not needed stay empty.
    classes: int | str = "auto"
    #: Whether finding an object depends on its size.
    by_size: bool = True
    #: Whether there may be decoys: what several experts mark though it is no object. "auto": where
    #: there are several images and ten persons or more, five of whom looked at one image.
    decoys: bool | str = "auto"
    #: How many looked at each of several images, if nothing says who looked. Those who marked
    #: nothing there are taken to be typical. "auto": as many as marked something on the busiest
    #: tenth of the images; 0: only those who marked something.
    assumed_looks: float | str = "auto"
    #: Dirichlet parameter of the classes' weights; below 1 classes tend to be empty.
    class_weight: float = 0.05
    #: Log odds that an expert finds an object: mean over classes, spread between classes, the
    #: least that a class may have (what is found less often is not called an object), spread
    #: between experts, what else an expert's odds may differ by in a single class, and how much
    #: they change with the log size: how much experts differ in that, and how much a typical one's
    #: may be (spreads).
    ease_mean: float = 1.0
    ease_sd: float = 1.25
    ease_least: float = -2.2
    #: How much more of the easy classes, and less of the hard ones, some images have than others,
    #: and how sure that is: 1 / its square is Gamma of this shape. "held": all images are alike.
    #: "auto": ``LEARNED_IMAGES``. Where there is one image, or one class of objects, it is held.
    image_ease_sd: float | str = "auto"
    image_ease_sd_shape: float = 200.0
    skill_sd: float = 1.0
    interaction_sd: float = 0.25
    #: Log odds that an expert marks a decoy who makes as many false marks as is usual: mean and
    #: spread, and how much experts differ who make equally many.
    decoy_ease: float = 0.0
    decoy_ease_sd: float = 1.5
    decoy_sd: float = 1.5
    #: The share of experts who mark a decoy, on average: at least (what fewer mark is an ordinary
    #: false mark) and at most (what more mark is an object).
    decoy_least: float = 0.15
    decoy_most: float = 0.4
    slope_sd: float = 1.0
    size_slope_sd: float = 3.0
    #: How sure the spread between experts is: 1 / its square is Gamma of this shape.
    skill_sd_shape: float = 4.0
    #: Probability that a person with several lists puts what they notice on one (Beta).
    listing_a: float = 1.0
    listing_b: float = 1.0
    #: Gamma shape of the expected numbers of objects on different images, and how sure that is and
    #: how sure their mean, the markings per image: standard deviations of the logarithms.
    objects_shape: float = 1.0
    objects_shape_sd: float = 1.0
    objects_mean_sd: float = 2.0
    #: Weight, in objects, of the markings' sizes in what sizes all objects and false marks have.
    #: "held": both have the markings' sizes, and nothing is learned of them. "auto":
    #: ``LEARNED_SIZES``.
    size_weight: float | str = "auto"
    #: Gamma shape of an expert's expected false marks per image: small where few experts make
    #: most of them. What it is about, and how sure that is where it is learned: the standard
    #: deviation of its logarithm. "held": it is ``false_shape``. "auto": ``LEARNED_SPREAD``. Their
    #: mean is a share of the expert's markings that is learned in any case.
    false_shape: float = 1.0
    false_shape_sd: float | str = "auto"
    #: Gamma shape of an expert's false marks on different images: small where they come in clumps.
    #: What it is about, and how sure that is: the standard deviation of its logarithm. "held": it
    #: is ``look_shape``. "auto": ``LEARNED_CLUMPS`` where some list covers several images; where
    #: none does, there is nothing to learn, and every list has one rate.
    look_shape: float = 1.0
    look_shape_sd: float | str = "auto"
    #: What that share is about, and how sure that is: 1 / share is Gamma of this shape.
    false_share: float = 0.1
    share_shape: float = 1.0
    #: Dirichlet parameter of each category's share, among objects and among false marks.
    category_weight: float = 1.0
    #: How often a typical expert says the right category, and how sure that is of each category, in
    #: objects; what experts take for what is learned.
    accuracy: float = 0.8
    accuracy_weight: float = 10.0
    #: How alike experts are in that, in objects: the mean of a Gamma law, and its shape.
    confusion_strength: float = 10.0
    confusion_shape: float = 2.0
    #: By how much the log odds of being real differ between a source's highest and lowest scores:
    #: what is typical, how much sources differ in its logarithm, how sure the typical one is.
    score_slope: float = 4.0
    score_slope_sd: float = 1.0
    usual_slope_sd: float = 1.0
    #: Log odds of being real at a source's middle score, and how much sources differ in it.
    score_offset: float = 1.0
    score_offset_sd: float = 2.0

    def __post_init__(self) -> None:
        if isinstance(self.classes, str):
            check_choice("prior.classes", self.classes, ("auto", "1", "2", "3", "4"))
            if self.classes != "auto":
                object.__setattr__(self, "classes", int(self.classes))
        else:
            check(1 <= self.classes <= 4, "prior.classes", self.classes, '1 to 4, or "auto"')
        for name in (
            *(
                "class_weight",
                "image_ease_sd_shape",
                "ease_sd",
                "skill_sd",
                "skill_sd_shape",
                "interaction_sd",
            ),
            *("decoy_ease_sd", "decoy_sd", "slope_sd", "size_slope_sd", "listing_a"),
            *("listing_b", "objects_shape", "objects_shape_sd", "objects_mean_sd"),
            *(
                "false_shape",
                "look_shape",
                "false_share",
                "share_shape",
                "category_weight",
                "accuracy_weight",
            ),
            *("confusion_strength", "confusion_shape", "score_slope", "score_slope_sd"),
            *("usual_slope_sd", "score_offset_sd"),
        ):
            check(getattr(self, name) > 0, f"prior.{name}", getattr(self, name), "above 0")
        for name in ("size_weight", "false_shape_sd", "look_shape_sd", "image_ease_sd"):
            value = getattr(self, name)
            if isinstance(value, str):
                check_choice(f"prior.{name}", value, ("auto", "held"))
            else:
                check(value > 0, f"prior.{name}", value, 'above 0, "auto" or "held"')
        check(
            0 <= self.decoy_least < self.decoy_most <= 1,
            "prior.decoy_most",
            self.decoy_most,
            "above prior.decoy_least, both from 0 to 1",
        )
        if isinstance(self.decoys, str):
            check_choice("prior.decoys", self.decoys, ("auto",))
        if isinstance(self.assumed_looks, str):
            check_choice("prior.assumed_looks", self.assumed_looks, ("auto",))
        else:
            check(
                self.assumed_looks >= 0,
                "prior.assumed_looks",
                self.assumed_looks,
                'at least 0, or "auto"',
            )
        check(0 < self.accuracy < 1, "prior.accuracy", self.accuracy, "between 0 and 1")
