"""Failed assertions of the contract suite show their values here too."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("pyrunner.testing.shell_contract")
