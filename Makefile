PYTHON ?= python3
BIN := .venv/bin

# Some containers set it, and then each of the tests' many processes compiles every module again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo serve test test-slow test-scale test-all browser promises fuzz check check-dashboard fmt bench migrate docs clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .venv/.installed  ## Create .venv with the packages pinned in constraints.txt

demo: .venv/.installed  ## Serve the demo data with the dashboard, and train on it meanwhile
	$(BIN)/kairos demo

serve: .venv/.installed  ## Run the service (settings: KAIROS_*)
	$(BIN)/kairos serve

# Folders that hold slow tests only (SLOW_FOLDERS of tests/conftest.py) need not be imported.
SLOW_ONLY := benchmarks browser client deployment e2e kairos operations promises scale training/retraining

# Without the checks of shapes at run time, which take most of the time of an encoder: `test-slow` runs the same tests
# of tensor code with them, and so does pytest by itself.
test: .venv/.installed  ## Run the fast tests, in under three minutes on two cores
	$(BIN)/pytest -n 2 --dist loadfile --jaxtyping-packages= $(addprefix --ignore=tests/,$(SLOW_ONLY))

# Where the tests in a browser are: the others need not be imported.
IN_BROWSER := tests/browser tests/deployment/test_dashboard_behind_proxy.py

browser: .venv/.installed  ## Test every page of the dashboard in Chromium
	$(BIN)/pytest -n 2 --dist loadfile -m "browser and not slow" $(IN_BROWSER)

test-all: test test-slow test-scale  ## Run the fast tests, then the slow ones, then those of several machines

# In several processes: the event loop of Playwright stays in the thread of the tests. Shapes are checked in the tests of
# tensor code only, all of which run with more examples; elsewhere the checks would take half of the time of a training.
test-slow: .venv/.installed  ## Run the slow tests: services, proxies, killed processes, short promises, every method, shapes, more examples
	$(BIN)/pytest -n 2 --dist loadfile --hypothesis-profile=thorough --jaxtyping-packages= \
		-m "(slow or hypothesis) and not scale and not browser and not gpu and not realdata" \
		$(addprefix --ignore=tests/,browser scale model training)
	$(BIN)/pytest -n 2 --dist loadfile --hypothesis-profile=thorough -m "not scale and not browser and not gpu and not realdata" \
		tests/model tests/training
	$(BIN)/pytest -n 2 --dist loadfile -m "slow and browser" $(IN_BROWSER)

# One at a time: each starts processes of its own on every core.
test-scale: .venv/.installed-scale  ## Run the tests of several machines: Ray, an object store, replicas
	$(BIN)/pytest -m scale tests/scale

promises: .venv/.installed  ## Measure the promises of the service at full strength; needs an idle machine
	$(BIN)/pytest tests/promises --full-strength -m "not gpu" --timeout=3600 -rA
	$(BIN)/python -m tests.promises.table

CASES := 100000

fuzz: .venv/.installed  ## Send CASES fresh random requests on both databases; SEED=... resumes a run
	$(BIN)/python -m tests.promises.fuzzing --cases $(CASES) $(if $(SEED),--seed $(SEED))

check: .venv/.installed  ## Check formatting, lint, types and import contracts
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	@$(MAKE) --no-print-directory check-dashboard

check-dashboard:  ## Check types and lint of the dashboard, if tsc and biome are installed
	@if command -v tsc >/dev/null && command -v biome >/dev/null; then \
		tsc -p app/dashboard && cd app/dashboard && biome lint; \
	else \
		echo "dashboard not checked: npm install --global typescript @biomejs/biome"; \
	fi

fmt: .venv/.installed  ## Format, and apply the automatic fixes of lint
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

OF_EVENTS := benchmarks/speed/epoch.py benchmarks/speed/training_peers.py

bench: .venv/.installed  ## Measure the speed of training, serving and the index; EVENTS=... for other events
	@for script in $(filter-out %/synthetic_bundle.py $(OF_EVENTS),$(wildcard benchmarks/speed/*.py)); do \
		echo "== $$script" && $(BIN)/python $$script || exit 1; \
	done
	@echo "== benchmarks.speed.serving" && $(BIN)/python -m benchmarks.speed.serving
	@for script in $(OF_EVENTS); do \
		echo "== $$script" && $(BIN)/python $$script $(if $(EVENTS),--events $(EVENTS)) || exit 1; \
	done

migrate: .venv/.installed  ## Upgrade the database schema
	$(BIN)/kairos migrate

docs: .venv/.installed  ## Rewrite the generated documents: OpenAPI snapshot, references of API and recipes, demo recipe, tables
	$(BIN)/kairos openapi > docs/openapi.json.new
	mv docs/openapi.json.new docs/openapi.json
	$(BIN)/python -m tests.architecture.tables
	$(BIN)/python -m tests.promises.table
	$(BIN)/kairos bench papers --suite retail --recommend
	$(BIN)/kairos bench papers --render
	$(BIN)/kairos bench ablations --render

clean:  ## Remove caches and build outputs; keeps .venv, data and bundles
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -c constraints.txt -e ".[dev]"
	@touch $@

.venv/.installed-scale: .venv/.installed
	$(BIN)/pip install -c constraints.txt -e ".[dev-scale]"
	@touch $@
