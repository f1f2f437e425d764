"""What may be called how: a planted claim for every rule gets the verdict that the rule says."""

import pytest

from harness.planted import RULES


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.what)
def test_a_verdict_follows_the_rules(rule):
    found = rule.found()
    assert ", ".join(filter(None, (found.verdict, found.qualifier))) == rule.verdict
    assert ("counterexample" in found.evidence) == ("fails" in {clause.verdict for clause in found.clauses})
