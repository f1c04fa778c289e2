# docker build -t treewright .
# docker run -p 8000:8000 -v treewright:/models --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges treewright
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
WORKDIR /build
COPY requirements.lock ./
# The environment has no pip of its own: nothing in the image can install anything into it.
RUN --mount=type=cache,target=/root/.cache/pip \
    python -m venv --without-pip /opt/venv \
    && python -m pip --python /opt/venv/bin/python install --disable-pip-version-check --require-hashes -r requirements.lock
COPY service /app/service
# The file system is read-only later: byte code is made now.
RUN python -m compileall -q /app/service

FROM python:${PYTHON}-slim
LABEL org.opencontainers.image.title="treewright" \
      org.opencontainers.image.description="Trains decision trees, lists every split they weighed, serves predictions"
RUN groupadd --gid 10001 treewright \
    && useradd --uid 10001 --gid treewright --no-create-home --home-dir /models --shell /usr/sbin/nologin treewright \
    && install --directory --owner treewright --group treewright /models
COPY --from=build /opt/venv /opt/venv
COPY --from=build /app /app
WORKDIR /app
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PORT=8000 \
    TREEWRIGHT_HOST=0.0.0.0 \
    TREEWRIGHT_MODELS_URL=/models/
# By number, so that Kubernetes can see that it is not root (runAsNonRoot).
USER 10001:10001
VOLUME /models
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=6s --start-period=30s --retries=3 CMD ["python", "-m", "service", "health"]
ENTRYPOINT ["python", "-m", "service"]
CMD ["serve"]
