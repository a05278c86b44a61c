"""Files of weights that others wrote: moses.ini as Moses has it, and what is refused where."""

import numpy as np
import pytest

from hopefear.errors import HopefearError, InputError
from hopefear.translation.weights import Weights

pytestmark = pytest.mark.interpreted

MOSES_INI = """\
#########################
### MOSES CONFIG FILE ###
#########################

# input factors
[input-factors]
0

# mapping steps
[mapping]
0 T 0

[distortion-limit]
6

# feature functions
[feature]
UnknownWordPenalty
WordPenalty
PhrasePenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=phrase-table.gz input-factor=0
LexicalReordering name=LexicalReordering0 num-features=6 type=wbe-msd-bidirectional-fe-allff
Distortion
KENLM name=LM0 factor=0 path=lm.bin order=5

# dense weights for feature functions
[weight]
# The default weights are NOT optimized for translation quality. You MUST tune the weights.
# Documentation for tuning is here: ...
UnknownWordPenalty0= 1
WordPenalty0= -1
PhrasePenalty0= 0.2
TranslationModel0= 0.2 0.2 0.2 0.2
LexicalReordering0= 0.3 0.3 0.3 0.3 0.3 0.3
Distortion0= 0.3
LM0= 0.5  # five-grams

[weight-file]
run8.sparse-weights

[threads]
8
"""
SPARSE = """\
# sparse
wt_das~the 0.25
wt_=~= -1
wt_a=1 2e-3
wt_50%~x 1
pp_das,haus~the,house 0.5
"""


def test_moses_ini_as_moses_writes_it(tmp_path):
    (tmp_path / "moses.ini").write_text(MOSES_INI)
    (tmp_path / "run8.sparse-weights").write_text(SPARSE)
    weights = Weights.read(tmp_path / "moses.ini")
    assert weights.layout == (
        ("UnknownWordPenalty0", 1),
        ("WordPenalty0", 1),
        ("PhrasePenalty0", 1),
        ("TranslationModel0", 4),
        ("LexicalReordering0", 6),
        ("Distortion0", 1),
        ("LM0", 1),
    )
    assert weights.dense.tolist() == [1, -1, 0.2, *[0.2] * 4, *[0.3] * 6, 0.3, 0.5]
    assert weights.phrases == {"das haus ||| the house": 0.5}
    assert weights.sparse == {"wt_das~the": 0.25, "wt_=~=": -1.0, "wt_a=1": 2e-3, "wt_50%~x": 1.0}
    weights.write(tmp_path / "new.ini")
    assert Weights.read(tmp_path / "new.ini") == weights
    assert (tmp_path / "new.ini").read_text().endswith("\n[weight-file]\nnew.ini.sparse\n")
    assert "\nwt_a=1 0.002\n" in (tmp_path / "new.ini.sparse").read_text()


def test_no_sidecar_where_nothing_is_sparse(tmp_path):
    Weights((("LM0", 1),), np.array([0.1 + 0.2])).write(tmp_path / "w.ini")
    assert (tmp_path / "w.ini").read_text() == "[weight]\nLM0= 0.30000000000000004\n"
    assert [path.name for path in tmp_path.iterdir()] == ["w.ini"]


def test_sidecar_that_is_absent_or_wrong(tmp_path):
    path = tmp_path / "w.ini"
    path.write_text("[weight]\nLM0= 1\n[weight-file]\n\nnone.sparse\n")
    with pytest.raises(InputError, match=r"w\.ini:5: .*none\.sparse: cannot be read") as raised:
        Weights.read(path)
    assert raised.value.line == 5
    beside = tmp_path / "none.sparse"
    for text, message in (
        ("a_b 1\nLM0 2\n", r"none\.sparse:2: expected a name that is not dense"),
        ("a_b 1\na_c=2\n", r"none\.sparse:2: expected NAME NUMBER, found 'a_c=2'"),
        ("a_b 1\na_c 2 3\n", r"none\.sparse:2: expected one number under a_c"),
        ("a_b 1\n#: dense\nTM0 2\n", r"none\.sparse: expected sparse weights only"),
        ("a_b\xff 1\n", r"none\.sparse:1: expected UTF-8 text"),
    ):
        beside.write_bytes(text.encode("latin-1"))
        with pytest.raises(InputError, match=message):
            Weights.read(path)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("LM0= 1\nTM0= 1 x\n", 2, "expected a number, found 'x'"),
        ("LM0= 1\n\nTM0= 1 nan\n", 3, "expected a finite number, found 'nan'"),
        ("a_b=inf\n", 1, "expected a finite number, found 'inf'"),
        ("LM0= 1e999\n", 1, "expected a finite number, found '1e999'"),
        ("LM0= 1_0\n", 1, "expected a number, found '1_0'"),
        ("# c\nLM0=\n", 2, "expected NAME= NUMBER …, found 'LM0='"),
        ("LM0\n", 1, "expected NAME= NUMBER …, found 'LM0'"),
        ("= 1\n", 1, "expected NAME= NUMBER …, found '= 1'"),
        ("=1\n", 1, "expected NAME= NUMBER …, found '=1'"),
        ("TM0=0.2 0.3\n", 1, "expected a blank behind '='"),
        ("LM0= 1\n# c\nLM0= 1\n", 3, "expected LM0 once (it is on line 1 too), found 'LM0= 1'"),
        ("a_b= 1\na%5fb= 1\n", 2, "once (it is on line 1 too)"),
        ("pp_x~y= 1\npp_x~y= 2\n", 2, "once (it is on line 1 too)"),
        ("#: sparse\nLM0= 1 2\n", 2, "expected one number under LM0"),
        ("#: phrases\na_b= 1\n", 2, "expected a phrase pair"),
        ("#: spares\na_b= 1\n", 1, "expected dense, sparse, phrases or about behind '#:'"),
        ("LM0= 1\n#: about {\n", 2, "expected a JSON object behind '#: about'"),
        ('LM0= 1\n#: about {"x": NaN}\n', 2, "expected a JSON object behind '#: about'"),
        ("", 0, "expected at least one weight"),
        ("# nothing\n", 0, "expected at least one weight"),
        ("[feature]\nLM0= 1\n", 0, "expected a section [weight]"),
        ("[weight]\nLM0= 1\nTM0= 1 nan\n", 3, "expected a finite number"),
        ("[weight]\nLM0= 1\n\n[weight]\nLM0= 1\n", 5, "expected LM0 once"),
        ("[weight]\n[weight-file]\na\nb\n", 4, "expected one file under [weight-file]"),
    ],
)
def test_bad_lines(tmp_path, text, line, message):
    refused(tmp_path, text, line, message)


HEAD = '{"format": "hopefear-weights",\n'


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("{}", 0, 'expected a JSON object with "format": "hopefear-weights"'),
        ('{"format": "other"}', 0, 'expected a JSON object with "format"'),
        (HEAD + '"version": 2}', 2, "expected version 1 (newer files need a newer hopefear)"),
        (HEAD + '"dense": {\n"LM0": [1],\n"TM0": [1, NaN]}}', 4, "a finite number under TM0"),
        (HEAD + '"dense": {\n"LM0": [1],\n"TM0": 1e999}}', 4, "a finite number under TM0"),
        (HEAD + '"sparse": {\n"a_b": -Infinity}}', 3, "a finite number under a_b"),
        (HEAD + '"sparse": {\n"a_b": ' + "9" * 400 + "}}", 3, "a finite number under a_b"),
        (HEAD + '"sparse": {\n"a_b": "1"}}', 3, "a number under a_b, found '\"1\"'"),
        (HEAD + '"sparse": {\n"a_b": true}}', 3, "a number under a_b, found 'true'"),
        (HEAD + '"sparse": {\n"a_b": 1,\n"a_b": 1}}', 4, "expected a_b once"),
        (HEAD + '"sparse": {},\n"sparse": {}}', 3, "expected sparse once"),
        (HEAD + '"dense": {"LM0": 1},\n"sparse": {\n"LM0": 1}}', 4, "a name that is not dense"),
        (HEAD + '"dense": {\n"LM0": []}}', 3, "a name and at least one number"),
        (HEAD + '"phrases": {\n"das": 1}}', 3, "a phrase pair"),
        (HEAD + '"dense": [1]}', 2, "expected an object under dense"),
        (HEAD + '"weights": {}}', 2, "expected one of format, version, dense"),
        (HEAD + '"dense": {"LM0": [1]}', 2, "expected JSON (Expecting ',' delimiter)"),
        (HEAD + '"dense": {}}', 0, "expected at least one weight"),
    ],
)
def test_bad_json(tmp_path, text, line, message):
    refused(tmp_path, text, line, message)


def refused(folder, text, line, message):
    path = folder / "weights"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        Weights.read(path)
    assert message in str(raised.value)
    assert str(raised.value).startswith(f"{path}:{line}: " if line else f"{path}: ")


def test_other_files_are_refused(tmp_path):
    with pytest.raises(HopefearError, match="cannot be read: No such file"):
        Weights.read(tmp_path / "none")
    (tmp_path / "w").write_bytes(b"LM0= 1\nTM\xff= 1\n")
    with pytest.raises(InputError, match="w:2: expected UTF-8 text"):
        Weights.read(tmp_path / "w")
    (tmp_path / "w").write_bytes(b"LM0= 1\n")
    (tmp_path / "w").rename(tmp_path / "w.gz")
    with pytest.raises(InputError, match="expected gzip data"):
        Weights.read(tmp_path / "w.gz")
