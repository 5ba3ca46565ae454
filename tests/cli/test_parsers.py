"""The command line is made from signatures: options, defaults and help cannot differ from those of the functions."""

import inspect

import pytest

from axonnx.cli import main
from axonnx.cli.command import VERBS
from axonnx.cli.options import EXTRA, parser_of, read
from axonnx.cli.parsers import COMMON, MANY, OTHER_WORDS, SKIPPED, function_of, parameters, split_words

MOST = 110  # options of all verbs; those of every verb count once


def options_of(name):
    """The options of a verb, without --help and those of every verb."""
    common = {flag for shared in COMMON for flag in shared.flags}
    actions = parser_of(name, VERBS[name])._actions
    return [a for a in actions if a.option_strings and a.dest != "help" and not common & set(a.option_strings)]


def words_of(name):
    return [action for action in parser_of(name, VERBS[name])._actions if not action.option_strings]


@pytest.mark.parametrize("name", VERBS)
def test_every_option_is_a_parameter_with_the_same_default_or_is_of_the_command_line_alone(name):
    verb = VERBS[name]
    alone = {EXTRA[key].flags[-1] for key in verb.extra}
    known = {}
    for place in verb.calls:
        for key, parameter in inspect.signature(function_of(place)).parameters.items():
            known.setdefault(key, parameter.default)
    for action in options_of(name):
        if action.option_strings[-1] in alone:
            continue
        expected = known[action.dest]
        assert action.default == (None if expected is inspect.Parameter.empty else expected), action.dest


@pytest.mark.parametrize("name", VERBS)
def test_every_parameter_is_a_word_or_an_option_or_says_that_it_is_none(name):
    verb = VERBS[name]
    there = {action.dest for action in parser_of(name, verb)._actions}
    for place in verb.calls:
        wanted = set(inspect.signature(function_of(place)).parameters) - SKIPPED - set(verb.without)
        assert wanted <= there


@pytest.mark.parametrize("name", VERBS)
def test_every_word_and_option_is_described_in_args(name):
    described = {each.name: each.about for place in VERBS[name].calls for each in parameters(function_of(place))}
    for action in [*options_of(name), *words_of(name)]:
        assert action.help, action.dest
        if action.dest in described:
            assert described[action.dest][:1].lower() == action.help[:1].lower()


def test_there_are_no_more_options_than_a_person_can_know():
    assert sum(len(options_of(name)) for name in VERBS) + len(COMMON) <= MOST


@pytest.mark.parametrize("name", VERBS)
def test_many_options_stand_in_groups(name):
    groups = [group.title for group in parser_of(name, VERBS[name])._action_groups]
    assert len(options_of(name)) <= MANY or len(groups) > 3


@pytest.mark.parametrize(
    ("flag", "meanings"),
    [
        ("--output", {"output", "to write", "draw", "moving picture", "everything that is made", "runs"}),
        ("--json", {"JSON"}),
        ("--data", {"data", "Data"}),
        ("--jobs", {"processes", "Processes"}),
        ("--run", {"run folder", "Run folder"}),
    ],
)
def test_a_word_means_one_thing_in_every_verb(flag, meanings):
    found = [(name, a.help) for name in VERBS for a in options_of(name) if flag in a.option_strings]
    assert len(found) > 1
    for name, text in found:
        assert any(meaning in text for meaning in meanings), (name, text)


def typed(name, *words):
    verb = VERBS[name]
    return split_words(name, parser_of(name, verb), words, verb.settings)


@pytest.mark.parametrize(
    ("name", "words", "meant"),
    [
        ("train", ["digits", "--out", "o"], ["digits", "--output", "o"]),
        ("eval", ["m", "--cluster", "tcp://a:1"], ["m", "--jobs", "tcp://a:1"]),
        ("run", ["m", "s", "--resize", "--crop=1,2"], ["m", "s", "--fit=resize", "--fit=1,2"]),
        ("run", ["m", "s", "--tolerance_us", "5"], ["m", "s", "--reorder", "5"]),
        ("run", ["m", "s", "--on_disorder=drop"], ["m", "s", "--on_disorder=drop"]),
        ("run", ["m", "d", "-o", "a.jsonl"], ["m", "d", "--json=a.jsonl"]),
        ("profile", ["m", "--run", "r", "--all"], ["m", "--data", "r", "--limit=all"]),
        ("verify", ["m", "--engines"], ["m"]),
        ("verify", ["m", "-o", "v.json"], ["m", "--json=v.json"]),
    ],
)
def test_other_words_mean_present_options(name, words, meant):
    assert typed(name, *words) == (meant, [])


def test_the_file_of_json_is_never_a_model():
    """A word behind --json is its file only if it is called like one: a model must not be written over."""
    assert typed("verify", "--json", "model.onnx") == (["--json=-", "model.onnx"], [])
    assert typed("verify", "--json", "found.json", "model.onnx") == (["--json=found.json", "model.onnx"], [])


@pytest.mark.parametrize("name", [name for name, verb in VERBS.items() if verb.settings])
def test_settings_stand_anywhere(name):
    words, apart = typed(name, "--optimiser.epochs", "3", "digits", "--quiet", "--seed=7")
    assert (words, apart) == (["digits", "--quiet"], ["--optimiser.epochs", "3", "--seed=7"])


def test_old_words_are_those_of_no_present_option():
    for name, others in OTHER_WORDS.items():
        for old in others:
            verbs = [name] if name else list(VERBS)
            for verb in verbs:
                assert not any(old in a.option_strings for a in options_of(verb)), (verb, old)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["run", "m", "s", "--limit", "0"], "'0'; expected a whole number from 1 on"),
        (["run", "m", "s", "--seed", "-1"], "'-1'; expected a whole number from 0 on"),
        (["run", "m", "s", "--origin", "then"], "'then'; expected a whole number; or first"),
        (["run", "m", "s", "--origin", str(2**63)], "expected a whole number of 64 bits; or first"),
        (["profile", "m", "--limit", "some"], "'some'; expected a whole number; or all"),
        (["export", "r", "--collapse", "best"], "invalid choice: 'best'"),
        (["run", "m", "s", "--hush"], "unrecognized arguments: --hush"),
        (["run", "m", "s", "--wind"], "unrecognized arguments: --wind"),  # no abbreviations
    ],
)
def test_wrong_values_are_refused_by_type(words, text, capsys):
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2
    assert text in capsys.readouterr().err


def test_options_are_those_of_the_function_that_is_called():
    options = read("export", VERBS["export"], ["r", "-o", "m.onnx", "--collapse", "sampled", "--members", "3"])
    assert options.of() == {
        "output": "m.onnx", "collapse": "sampled", "members": 3, "seed": 0, "calibrate": False, "prune": None,
        "weights": "int16", "form": "sequence", "trace": False, "passes": 8, "limit": None,
        "coverage": None, "dt": 1e-4,
    }  # fmt: skip


@pytest.mark.parametrize("words", [["resize", "centre"], ["resize", "3,4"]])
def test_two_ways_to_fit_exclude_each_other(words, files, tmp_path, capsys):
    fits = [part for word in words for part in ("--fit", word)]
    assert main(["run", str(files["plain"]), str(tmp_path / "none.npz"), *fits]) == 2
    assert "resize and a crop exclude each other" in capsys.readouterr().err


@pytest.mark.parametrize("name", VERBS)
def test_help_is_printed_for_every_verb(name, capsys):
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert "every verb:" in text
    assert "``" not in text


def test_unknown_annotations_are_read_as_text():
    def take(value: "NothingKnown", other: "int | NothingKnown" = 3):  # noqa: F821
        """Take.

        Args:
            value: A value.
            other: Another.
        """

    first, second = parameters(take)
    assert (first.kinds, first.required, second.kinds, second.default) == ((str,), True, (int, str), 3)
