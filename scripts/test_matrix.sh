#!/bin/sh
# Runs the tests on each interpreter in PYTHONS with each Polars release in POLARS ("newest" or a
# version), each in an environment of its own, .venv-<python>-<polars>. Arguments go to pytest.
# `make test-matrix` sets UV, PYTHONS and POLARS.
set -u

summary=""
failed=0

for name in $PYTHONS; do
    if ! python=$(sh scripts/find_python.sh "$name" 2>/dev/null); then
        summary="$summary
skipped  $name: it is not installed here, or lacks venv"
        continue
    fi
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    for polars in $POLARS; do
        case $polars in
            newest) requirement=polars ;;
            *) requirement="polars==$polars" ;;
        esac
        environment="$PWD/.venv-$version-$(echo "$polars" | tr -d '.*')"
        leg="Python $version, $requirement"
        echo "== $leg"

        # The constraints hold everything else still, so that a difference is Polars' or Python's.
        [ -x "$environment/bin/python" ] || $UV venv --python "$python" "$environment" || exit 1
        grep -v '^polars' constraints.txt > "$environment/constraints.txt"
        if $UV pip install --python "$environment/bin/python" --constraint "$environment/constraints.txt" \
            --upgrade-package polars --group dev --editable . --editable examples/nyc_flights "$requirement" \
            && mkdir -p "$environment/home" \
            && env HOME="$environment/home" PATH="$environment/bin:$PATH" VIRTUAL_ENV="$environment" \
                python -m pytest --numprocesses auto --maxprocesses 4 --dist loadscope "$@"
        then
            summary="$summary
passed   $leg"
        else
            failed=1
            summary="$summary
FAILED   $leg"
        fi
    done
done

echo "$summary"
exit $failed
