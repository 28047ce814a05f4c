"""Expands template.yaml as SAM does on deployment and checks what comes out.

Usage: template.py TEMPLATE OUTPUT

Writes the expansion to OUTPUT as JSON, for cfn-lint and for whoever needs the
resources, and fails with a list of what breaks the project's own rules. Before
that it breaks every rule on purpose, and fails when a rule does not notice.
"""

import copy
import json
import sys

from expansion import expand
from rules import RULES


def main():
    template = expand(sys.argv[1])
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        json.dump(template, f, indent=1)
    wrong, proofs = [], 0
    for rule, breaks in RULES:
        broken = list(rule(template))
        wrong += broken
        if not breaks:
            wrong.append(f"the rule {rule.__name__} has no proof that it can fail")
        for n, change in enumerate(breaks, 1):
            proofs += 1
            bad = copy.deepcopy(template)
            change(bad)
            if not set(rule(bad)) - set(broken):
                wrong.append(f"the rule {rule.__name__} does not notice its proof {n}, {change.__name__}")
    for sentence in wrong:
        print(f"template.yaml: {sentence}")
    if wrong:
        sys.exit(1)
    print(f"template.yaml: {len(template['Resources'])} resources keep {len(RULES)} rules; the rules noticed {proofs} ways of breaking them")


if __name__ == "__main__":
    main()
