"""Numbers with their uncertainty: intervals, paired tests, corrections, calibration, restoration.

The unit is the example; where several examples share a passage they form a cluster, and whole
clusters are resampled or flipped together. Every function leaves missing values (NaN) out, counts
what it used, and returns NaN rather than a guess where there is too little data.
"""

from lab.instruments.statistics.estimate import Estimate
from lab.instruments.statistics.means import (
    geometric_mean_ratio,
    mean_estimate,
    proportion,
    ratio_of_means,
)
from lab.instruments.statistics.patches import (
    Restoration,
    Window,
    critical_window,
    expected_jaccard,
    jaccard,
    restoration,
    restoration_of_means,
)
from lab.instruments.statistics.resampling import (
    Means,
    bootstrap,
    bootstrap_means,
    bootstrap_sums,
    cluster_codes,
)
from lab.instruments.statistics.testing import (
    SignFlip,
    benjamini_hochberg,
    sign_flip_test,
)
from lab.instruments.statistics.verdicts import (
    aurc,
    auroc,
    brier,
    calibration_bin,
    confusion_rates,
    expected_calibration_error,
    verdict_confidence,
)

__all__ = [
    "Estimate",
    "Means",
    "Restoration",
    "SignFlip",
    "Window",
    "aurc",
    "auroc",
    "benjamini_hochberg",
    "bootstrap",
    "bootstrap_means",
    "bootstrap_sums",
    "brier",
    "calibration_bin",
    "cluster_codes",
    "confusion_rates",
    "critical_window",
    "expected_calibration_error",
    "expected_jaccard",
    "geometric_mean_ratio",
    "jaccard",
    "mean_estimate",
    "proportion",
    "ratio_of_means",
    "restoration",
    "restoration_of_means",
    "sign_flip_test",
    "verdict_confidence",
]
