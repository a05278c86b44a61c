"""Training taggers: the same bytes for the same seed, broken off or not; best model kept."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from chain_oracle import corpus

from hopefear.core.interfaces import n_weights
from hopefear.data.sequences import SequenceDataset
from hopefear.errors import CombinationError, HopefearError, InputError
from hopefear.structures.chain.theta import chain_shape
from hopefear.tasks.tag.model import SequenceModel, chain_of
from hopefear.tasks.tag.task import check, scheme_of, scores, train
from hopefear.training.checkpoints import Checkpoints, InterruptedTrainingError
from hopefear.training.decoders.chains import ChainDecoder
from hopefear.training.predictors import LinearPredictor
from hopefear.training.stopping import Stopping

pytestmark = pytest.mark.interpreted

# One learner, so that its kernel is compiled once; the others are tested interpreted.
LEARNER = "perceptron"
EVERY = corpus(9, n=60)
DATA, DEV = EVERY.take(np.arange(40)), EVERY.take(np.arange(40, 60))
BIO = SequenceDataset(DATA.rows, ("B-X", "O", "B-Y"), DATA.features)


def fitted(data=DATA, params=None, **more):
    return train(data, LEARNER, params, **{"epochs": 3, **more})


def weights(data=DATA, **more):
    return fitted(data, **more).model.weights


def test_the_same_seed_gives_the_same_bytes():
    first, second, other = (fitted(seed=seed).model for seed in (1, 1, 2))
    assert first.to_bytes() == second.to_bytes()
    assert not np.array_equal(first.weights, other.weights)
    assert SequenceModel.from_bytes(first.to_bytes()).tag(DEV).texts() == first.tag(DEV).texts()


def test_a_small_language_is_learnt():
    result = fitted(epochs=6, dev=DEV)
    model = result.model
    mistakes = [event["pass_mistakes"] for event in result.fit.history]
    assert mistakes[-1] < mistakes[0] / 2
    found = scores(DATA, model.decoder().predict(DATA.rows), None)
    assert found["accuracy"] > 95
    assert result.fit.history[-1]["dev"]["accuracy"] > 60
    assert "perceptron" in model.signature and "order:1" in model.signature
    assert model.about["learner"] == LEARNER
    assert model.about["data"]["examples"] == 40


@pytest.mark.parametrize("n_jobs", [2, 5])
def test_threads_and_pieces_change_nothing(n_jobs):
    one = fitted(dev=DEV).model.to_bytes()
    assert fitted(dev=DEV, n_jobs=n_jobs).model.to_bytes() == one
    np.testing.assert_array_equal(weights(pieces=n_jobs), weights())


class KilledError(Exception):
    """Stands for the end of the process."""


def killer(after):
    """A listener that ends the run at the event of that number."""
    seen = []

    def listen(event):
        seen.append(event)
        if len(seen) == after:
            raise KilledError

    return listen


def test_a_run_broken_off_anywhere_ends_in_the_same_bytes(tmp_path):
    how = {"dev": DEV, "pieces": 3, "epochs": 3}
    whole = fitted(**how, stopping=Stopping("accuracy", 0)).model.to_bytes()
    ends = 0
    for after in range(1, 10):
        folder = tmp_path / str(after)
        try:
            fitted(**how, stopping=Stopping("accuracy", 0), on_event=[killer(after)],
                   checkpoints=Checkpoints(folder, every=0.0))  # fmt: skip
        except KilledError:
            ends += 1
        again = fitted(**how, stopping=Stopping("accuracy", 0), resume=True,
                       checkpoints=Checkpoints(folder, every=0.0))  # fmt: skip
        assert again.model.to_bytes() == whole, after
    assert ends == 9


def test_a_run_that_is_killed_again_and_again(tmp_path):
    whole = fitted(pieces=4).model.to_bytes()
    for _ in range(30):
        try:
            done = fitted(pieces=4, on_event=[killer(2)], resume=True,
                          checkpoints=Checkpoints(tmp_path, every=0.0))  # fmt: skip
            break
        except KilledError:
            pass
    else:
        done = fitted(pieces=4, resume=True, checkpoints=Checkpoints(tmp_path, every=0.0))
    assert done.model.to_bytes() == whole


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_interrupt_saves_and_says_how_to_go_on(tmp_path):
    def interrupt(event):
        if event["epoch"] == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(InterruptedTrainingError, match=r"interrupted in pass 2 .*--resume"):
        fitted(on_event=[interrupt], checkpoints=Checkpoints(tmp_path))
    again = fitted(resume=True, checkpoints=Checkpoints(tmp_path))
    assert again.model.to_bytes() == fitted().model.to_bytes()


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"seed": 2}, "signature"),
        ({"params": {"rate": 0.5}}, "signature"),
        ({"order": 2}, "order"),
        ({"data": DATA.take(np.arange(40)[::-1])}, "data"),
        ({"constraints": "never"}, "constraints"),
        ({"shuffle": False}, "shuffle"),
        ({"beam": 5}, "beam"),
        ({"dev": DEV}, "dev"),
        ({"data": BIO}, "data"),
    ],
    ids=lambda value: str(value)[:25],
)
def test_a_checkpoint_of_another_run_is_refused(other, what, tmp_path):
    fitted(epochs=1, checkpoints=Checkpoints(tmp_path))
    how = {"epochs": 1, "resume": True, "checkpoints": Checkpoints(tmp_path)}
    with pytest.raises(HopefearError, match=f"of another run: its {what}"):
        fitted(**how, **other)


def test_a_run_chosen_by_other_scores_is_another_run(tmp_path):
    how = {"dev": DEV, "epochs": 1}
    fitted(**how, stopping=Stopping("accuracy", 0), checkpoints=Checkpoints(tmp_path))
    for stopping in (Stopping("accuracy", 2), Stopping("sentence_accuracy", 0), None):
        with pytest.raises(HopefearError, match="of another run: its stopping"):
            fitted(**how, stopping=stopping, resume=True, checkpoints=Checkpoints(tmp_path))


def test_a_run_with_another_scheme_is_another_run(tmp_path):
    fitted(BIO, epochs=1, checkpoints=Checkpoints(tmp_path))
    with pytest.raises(HopefearError, match="of another run: its scheme"):
        fitted(BIO, epochs=1, scheme=None, resume=True, checkpoints=Checkpoints(tmp_path))


def test_early_stopping_restores_the_best():
    result = fitted(dev=DEV, stopping=Stopping("accuracy", patience=2), epochs=12)
    dev = [event["dev"]["accuracy"] for event in result.fit.history]
    best = int(np.argmax(dev)) + 1
    assert result.fit.best_epoch == best
    assert len(dev) in (best + 2, 12)
    np.testing.assert_array_equal(result.model.weights, weights(epochs=best))
    found = scores(DEV, result.model.decoder().predict(DEV.rows), None)
    assert found["accuracy"] == pytest.approx(max(dev))


def test_labels_that_only_held_out_data_has_count_as_errors():
    codes = DEV.rows.labels.copy()
    codes[:5] = 3
    dev = SequenceDataset(DEV.rows._replace(labels=codes), (*DATA.labels, "Z"), DATA.features)
    result = fitted(dev=dev)
    tags = result.model.decoder().predict(DEV.rows)
    wanted = 100 * np.mean(tags == codes)
    assert result.fit.history[-1]["dev"]["accuracy"] == pytest.approx(wanted)
    np.testing.assert_array_equal(result.model.weights, weights())
    assert np.isfinite(result.model.temperature)


def test_held_out_data_with_other_numbers_is_refused():
    swapped = SequenceDataset(DEV.rows, DATA.labels[::-1], DATA.features)
    with pytest.raises(HopefearError, match="encode both with the same labels"):
        fitted(dev=swapped)
    with pytest.raises(HopefearError, match="read the data with the model's feature map"):
        fitted(dev=corpus(3))


def test_a_whole_weight_is_as_good_as_copies():
    times = np.array([2, 1, 0, 3] * 10)
    copies = DATA.take(np.repeat(np.arange(40), times))
    found = weights(DATA.weighted(times), shuffle=False)
    np.testing.assert_array_equal(found, weights(copies, shuffle=False))
    np.testing.assert_array_equal(weights(DATA.weighted(np.ones(40))), weights())


def test_a_weight_of_a_half_is_half_a_direction():
    half = fitted(DATA.weighted(np.full(40, 0.5)), {"averaging": "averaged"}).model
    np.testing.assert_allclose(half.weights, weights() / 2, rtol=1e-6)


def test_order_two_has_triples_and_learns():
    result = fitted(order=2, epochs=6)
    assert result.model.order == 2
    plain = n_weights(chain_of(DATA.features, DATA.labels, 1, None))
    assert result.model.weights[plain:].any()
    assert scores(DATA, result.model.decoder().predict(DATA.rows), None)["accuracy"] > 95
    assert chain_shape(result.model.structure()).order == 2


def test_the_scheme_is_found_kept_and_obeyed():
    assert scheme_of(BIO) == "bio" and scheme_of(DATA) is None
    model = fitted(BIO).model
    assert model.scheme == "bio"
    free = fitted(BIO, constraints="never").model
    assert (free.scheme, free.constrained, model.constrained) == ("bio", False, True)
    assert fitted(BIO, scheme=None).model.scheme is None
    event = fitted(BIO, dev=BIO).fit.history[-1]["dev"]
    assert set(event) == {"accuracy", "sentence_accuracy", "f1", "precision", "recall"}


def test_constraints_in_training_need_legal_gold():
    labels = ("B-X", "I-X", "O")
    data = SequenceDataset(DATA.rows, labels, DATA.features)
    with pytest.raises(InputError, match="a label that BIO allows"):
        fitted(data, scheme="bio", constraints="always")
    always = fitted(BIO, constraints="always").model
    assert always.scheme == "bio"


def test_probabilities_of_a_trained_model_are_calibrated_a_little():
    """The temperature makes gold at least as probable as the bare scores do."""
    model = fitted(dev=DEV).model
    structure = model.structure()

    def likelihood(temperature):
        return (
            ChainDecoder(structure, LinearPredictor(model.weights), temperature)
            .log_likelihoods(DEV.rows)
            .sum()
        )

    assert likelihood(model.temperature) >= likelihood(1.0) - 1e-6
    assert likelihood(model.temperature) >= likelihood(2 * model.temperature) - 1e-6


def rows_with(**arrays):
    return SequenceDataset(DATA.rows._replace(**arrays), DATA.labels, DATA.features)


def one_label():
    rows = DATA.rows._replace(labels=np.zeros(DATA.n_tokens, np.int32))
    return SequenceDataset(rows, ("only",), DATA.features)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (DATA.take([]), "no tokens"),
        (rows_with(labels=np.where(np.arange(DATA.n_tokens) == 3, -1, 0)), "token 4 has no label"),
        (one_label(), "at least two labels, .*'only'"),
        (
            rows_with(
                starts=np.insert(DATA.rows.starts, 2, DATA.rows.starts[2]), weights=np.ones(41)
            ),
            "sequence 3 has no tokens",
        ),
    ],
    ids=["nothing", "unlabelled", "one label", "empty sequence"],
)
def test_data_that_cannot_be_learnt_from(data, message):
    with pytest.raises(HopefearError, match=message):
        check(data)
    with pytest.raises(HopefearError, match=message):
        fitted(data)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"order": 3}, "order must be 1 or 2"),
        ({"search": "luck"}, "search is one of astar, list, beam"),
        ({"search": "beam", "beam": 0}, "at least 1"),
        ({"constraints": "sometimes"}, "predict, always, never"),
        ({"scheme": "bio"}, "B|scheme"),
        ({"epochs": 0}, "epochs must be a whole number"),
        ({"params": {"rat": 1}}, "did you mean 'rate'"),
        ({"params": {"rate": "fast"}}, "rate must be a number"),
        ({"params": {"loss": "sap"}}, "did you mean 'sapo'"),
        ({"dev": DEV, "stopping": Stopping("f1", 1)}, "no score 'f1' to stop on"),
        ({"dev": DEV, "stopping": Stopping("accuracy", -1)}, "patience"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_bad_parameters_are_refused_before_anything_is_learnt(how, message):
    with pytest.raises(HopefearError, match=message):
        fitted(**how)


def test_learners_of_other_tasks_and_of_none():
    with pytest.raises(HopefearError, match="did you mean 'sapo'"):
        train(DATA, "sapos")
    with pytest.raises(HopefearError, match="no learner 'pegasos'"):
        train(DATA, "pegasos")


@pytest.mark.parametrize("loss", ["sapo", "log", "nbest-mira", "ramp"])
def test_votes_refuse_updates_they_cannot_keep(loss):
    with pytest.raises(CombinationError, match="use averaging=averaged"):
        fitted(params={"averaging": "voted", "loss": loss})
