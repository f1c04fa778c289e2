#!/usr/bin/env bash
# engine.sh COMMAND...: run a command with a container engine at hand.
#
# Where `docker info` answers, that engine is used, and the official base image. Elsewhere (root, Debian) an engine from
# Debian's packages is started and ended with the command, and python:<minor>-slim is made from a CPython of this machine
# in a minimal Debian: a stand-in, which shows that the image builds and runs, not what the official base contains.
# The command finds the client in $DOCKER, the engine in $DOCKER_HOST, and the base's Python in $BASE_PYTHON.
set -euo pipefail

use_running_engine() {
    DOCKER=$(command -v docker) && "$DOCKER" info >/dev/null 2>&1
}

install_packages() {
    [ "$(id -u)" = 0 ] || { echo "engine.sh: no engine answers, and only root can start one" >&2; exit 1; }
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -qqy --no-install-recommends \
        docker.io mmdebstrap nginx-light >/dev/null
    DOCKER=/usr/bin/docker # not another client that the PATH may have
}

start_engine() {
    engine=$(mktemp -d)
    trap stop_engine EXIT
    export DOCKER_HOST=unix://$engine/sock DOCKER_BUILDKIT=1
    /usr/sbin/dockerd -H "$DOCKER_HOST" --data-root "$engine/data" --exec-root "$engine/exec" -p "$engine/pid" \
        --oom-score-adjust 0 >"$engine/log" 2>&1 &
    engine_pid=$!
    until "$DOCKER" info >/dev/null 2>&1; do
        kill -0 "$engine_pid" 2>/dev/null || { cat "$engine/log" >&2; exit 1; }
        sleep .3
    done
}

# Ends the engine and removes what it made, but for its packages and its chains in the firewall.
stop_engine() {
    kill "$engine_pid" 2>/dev/null || :
    wait "$engine_pid" 2>/dev/null || :
    umount "$engine"/exec/netns/* 2>/dev/null || :
    ip link delete docker0 2>/dev/null || :
    rm -rf "$engine"
}

# The directory of a CPython of minor version $1 on this machine.
find_python() {
    local newest
    newest=$( (pyenv versions --bare 2>/dev/null || :) | grep -x "$1\.[0-9]*" | sort -V | tail -1 || :)
    if [ -n "$newest" ]; then pyenv prefix "$newest"; else "python$1" -c 'import sys; print(sys.base_prefix)' 2>/dev/null; fi
}

# python:$1-slim from the CPython in $2, laid out under /usr/local as in the official image.
make_base() {
    local certificates=/etc/ssl/certs/ca-certificates.crt libraries
    libraries=ca-certificates,netbase,tzdata,libssl3,libffi8,libsqlite3-0,libbz2-1.0,liblzma5,libreadline8,libncursesw6
    libraries+=,libuuid1,libexpat1,libgdbm6
    mmdebstrap --quiet --variant=minbase --dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/doc/*' \
        --include=$libraries \
        --customize-hook="tar -C $2 --exclude=site-packages --exclude=test --exclude=__pycache__ --exclude='config-*' \
            --exclude='*.a' --exclude='./bin/pip*' -c . | tar -C \"\$1/usr/local\" --no-same-owner -x" \
        --customize-hook="cp $certificates \"\$1$certificates\"; printf '[global]\ncert=$certificates\n' >\"\$1/etc/pip.conf\"" \
        --customize-hook="mkdir -p \"\$1/usr/local/lib/python$1/site-packages\"" \
        --customize-hook="chroot \"\$1\" sh -c 'ldconfig; /usr/local/bin/python3 -m ensurepip; ln -sf pip3 /usr/local/bin/pip' >/dev/null 2>&1" \
        bookworm - 2>/dev/null |
        "$DOCKER" import -c 'ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin' \
            -c 'ENV LANG=C.UTF-8' - "python:$1-slim" >/dev/null
}

export DOCKER BASE_PYTHON=3.13
if ! use_running_engine; then
    install_packages
    start_engine
    for BASE_PYTHON in 3.13 3.12 3.11; do
        if prefix=$(find_python "$BASE_PYTHON"); then break; fi
    done
    echo "engine.sh: no engine answered; started one, with a stand-in for python:$BASE_PYTHON-slim made from $prefix"
    make_base "$BASE_PYTHON" "$prefix"
fi
"$@"
