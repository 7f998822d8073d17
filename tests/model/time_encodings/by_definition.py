"""The features of one interval by the papers' formulas, one scalar at a time."""

import math

from model.interfaces import TimeEncoding
from model.time_encodings.bochner_inverse_cdf import BochnerInverseCDF
from model.time_encodings.bochner_nonparametric import BochnerFreeAmplitudes, BochnerNonparametric
from model.time_encodings.bochner_normal import BochnerLogNormal, BochnerNormal
from model.time_encodings.calendar import PERIODS, CalendarEncoding
from model.time_encodings.damped_rotation import DampedRotation
from model.time_encodings.mercer import MercerConcat, MercerFlex, MercerSum
from model.time_encodings.positional import Positional
from model.time_encodings.rotary import Rotary
from model.time_encodings.time2vec import Time2Vec


def features_by_definition(encoding: TimeEncoding, interval: float) -> list[float]:  # noqa: PLR0911
    """Compute phi(interval) in float64."""
    if isinstance(encoding, MercerConcat):
        return _mercer_concat(encoding, interval)
    if isinstance(encoding, MercerSum):
        return _mercer_sum(encoding, interval)
    if isinstance(encoding, MercerFlex):
        return _mercer_flex(encoding, interval)
    if isinstance(encoding, BochnerFreeAmplitudes):
        return _free_amplitudes(encoding, interval)
    if isinstance(encoding, DampedRotation):
        return _damped_rotation(encoding, interval)
    if isinstance(encoding, Time2Vec):
        return _time2vec(encoding, interval)
    if isinstance(encoding, CalendarEncoding):
        return features_by_definition(encoding.learned, interval) + _calendar(encoding, interval)
    return _bochner(_frequencies(encoding), interval)


def angles_by_definition(
    encoding: Rotary, order: int, interval: float, *, heads: int, planes: int
) -> list[list[float]]:
    """Compute by how much each plane of each head turns over so many events and days."""
    low, high = encoding.shortest, encoding.longest

    def of_order(plane: int, count: int) -> float:
        return order * encoding.order_base ** (-plane / count)

    def of_time(plane: int, count: int) -> float:
        period = low * (high / low) ** (plane / (count - 1) if count > 1 else 0.0)
        return 2 * math.pi * math.fmod(interval, period) / period

    if encoding.fusion == "early":
        row = [of_order(plane, planes) + of_time(plane, planes) for plane in range(planes)]
        return [row] * heads
    if encoding.fusion == "split_by_dim":
        timed = int(encoding.time_share * planes + 0.5)
        by_order = [of_order(plane, planes - timed) for plane in range(planes - timed)]
        return [by_order + [of_time(plane, timed) for plane in range(timed)]] * heads
    timed = int(encoding.time_share * heads + 0.5)
    by_order = [of_order(plane, planes) for plane in range(planes)]
    by_time = [of_time(plane, planes) for plane in range(planes)]
    return [by_order] * (heads - timed) + [by_time] * timed


def _damped_rotation(encoding: DampedRotation, interval: float) -> list[float]:
    """g^(w x) [cos(w x), sin(w x)], with g = sigmoid(raw); of the future, undamped."""
    features = []
    frequencies = [2 * math.pi / math.exp(log) for log in encoding.periods.log_periods.tolist()]
    for frequency, raw in zip(frequencies, encoding.raw_decay.tolist(), strict=True):
        scale = (1 / (1 + math.exp(-raw))) ** (frequency * max(interval, 0.0))
        angle = math.fmod(frequency * interval, 2 * math.pi)
        features += [scale * math.cos(angle), scale * math.sin(angle)]
    return [feature / math.sqrt(len(frequencies)) for feature in features]


def _calendar(encoding: CalendarEncoding, interval: float) -> list[float]:
    """The phase of an interval in the hour, the day, the week and the year."""
    features = []
    for period, amplitude in zip(PERIODS, encoding.amplitudes.tolist(), strict=True):
        angle = 2 * math.pi * math.fmod(interval, period) / period
        features += [
            encoding.scale * amplitude * part for part in (math.cos(angle), math.sin(angle))
        ]
    return features


def _frequencies(encoding: TimeEncoding) -> list[float]:
    """The frequencies of a Bochner encoding: section 4."""
    if isinstance(encoding, BochnerInverseCDF):
        return _inverse_cdf(encoding)
    assert isinstance(
        encoding, BochnerLogNormal | BochnerNormal | BochnerNonparametric | Positional
    )
    means = [2 * math.pi / math.exp(log) for log in encoding.periods.log_periods.tolist()]
    if isinstance(encoding, BochnerNormal):
        spread = 2 * math.pi / math.exp(encoding.spread.log_periods.item())
        return [m + spread * e for m, e in zip(means, encoding.noise.tolist(), strict=True)]
    if isinstance(encoding, BochnerLogNormal):
        spreads = encoding.spread_of_log_periods.tolist()
        noises = encoding.noise.tolist()
        return [m * math.exp(s * e) for m, s, e in zip(means, spreads, noises, strict=True)]
    return means


def _inverse_cdf(encoding: BochnerInverseCDF) -> list[float]:
    samples = encoding.log_periods(2 * encoding.uniform - 1).tolist()
    return [2 * math.pi / math.exp(encoding.centre + encoding.half_range * g) for g in samples]


def _bochner(frequencies: list[float], interval: float) -> list[float]:
    """sqrt(1/d) [cos w_1 x, sin w_1 x, ...]: Xu et al. 2019, eq. 4."""
    features = []
    for frequency in frequencies:
        features += [math.cos(frequency * interval), math.sin(frequency * interval)]
    return [feature / math.sqrt(len(frequencies)) for feature in features]


def _mercer_concat(encoding: MercerConcat, interval: float) -> list[float]:
    """[sqrt(c_0), sqrt(c_j) cos(j pi x / p), sqrt(c_j) sin(j pi x / p)] per period: eq. 6-7.

    The constants of all periods come first.
    """
    constants, waves = [], []
    logs = encoding.base_periods.log_periods.tolist()
    for log_period, raw in zip(logs, encoding.raw_coefficients.tolist(), strict=True):
        roots = [math.sqrt(math.log1p(math.exp(value))) for value in raw]
        constants.append(roots[0])
        for order, root in enumerate(roots[1:], start=1):
            angle = order * math.pi * interval / math.exp(log_period)
            waves += [root * math.cos(angle), root * math.sin(angle)]
    return constants + waves


def _mercer_sum(encoding: MercerSum, interval: float) -> list[float]:
    """b_i + sum_j C_ij cos(j pi x / p_i) + S_ij sin(j pi x / p_i): the authors' code."""
    features = encoding.bias.tolist()
    logs = encoding.base_periods.log_periods.tolist()
    for number, (log_period, row) in enumerate(
        zip(logs, encoding.coefficients.tolist(), strict=True)
    ):
        for order in range(1, encoding.degree + 1):
            angle = order * math.pi * interval / math.exp(log_period)
            cosine, sine = row[2 * order - 2 : 2 * order]
            features[number] += cosine * math.cos(angle) + sine * math.sin(angle)
    return [float(feature) for feature in features]


def _mercer_flex(encoding: MercerFlex, interval: float) -> list[float]:
    """b_i + sum_j C_ij cos(pi x / q_ij) + S_ij sin(pi x / q_ij): the authors' code."""
    features = []
    logs = encoding.harmonic_periods.log_periods.tolist()
    for number, row in enumerate(encoding.coefficients.tolist()):
        feature = encoding.bias.tolist()[number]
        for order in range(encoding.degree):
            angle = math.pi * interval / math.exp(logs[number * encoding.degree + order])
            cosine, sine = row[2 * order : 2 * order + 2]
            feature += cosine * math.cos(angle) + sine * math.sin(angle)
        features.append(feature)
    return features


def _free_amplitudes(encoding: BochnerFreeAmplitudes, interval: float) -> list[float]:
    """beta [sin(a_1 x), ..., cos(b_1 x), ...]: the authors' code."""
    sines = [
        math.sin(2 * math.pi * interval / math.exp(log_period))
        for log_period in encoding.sine_periods.log_periods.tolist()
    ]
    cosines = [
        math.cos(2 * math.pi * interval / math.exp(log_period))
        for log_period in encoding.cosine_periods.log_periods.tolist()
    ]
    waves = sines + cosines
    return [a * wave for a, wave in zip(encoding.amplitudes.tolist(), waves, strict=True)]


def _time2vec(encoding: Time2Vec, interval: float) -> list[float]:
    """[a x + b, sin(w_1 x + phi_1), ...]: Kazemi et al. 2019, eq. 1."""
    slope = encoding.slope.item() * encoding.unit_slope
    logs, phases = encoding.periods.log_periods.tolist(), encoding.phases.tolist()
    return [slope * interval + encoding.intercept.item()] + [
        math.sin(2 * math.pi / math.exp(log_period) * interval + phase)
        for log_period, phase in zip(logs, phases, strict=True)
    ]
