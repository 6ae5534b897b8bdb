# The segmenter, the gateway, the agent, and the agent for AgentCore: one image each.
#   docker build -f deploy/docker/services.Dockerfile --build-arg SERVICE=segmenter .
# SERVICE: segmenter, tts_gateway, agent or agentcore (the last one with --platform linux/arm64).
# LICENCES: any, or gpl-free, with which agents give pcm and wav only (THIRD_PARTY.md).
# A proxy's certificate goes in as a secret that stays out of the image: --secret id=ca,src=FILE.
ARG PYTHON=python:3.12-slim-bookworm

FROM ${PYTHON} AS built
ARG SERVICE
ARG LICENCES=any
ENV PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY deploy/docker/requirements/build.txt deploy/docker/requirements/${SERVICE}*.txt ./
RUN --mount=type=secret,id=ca \
    if [ -f /run/secrets/ca ]; then export PIP_CERT=/run/secrets/ca; fi \
    && case "${SERVICE} ${LICENCES}" in \
         agent*gpl-free) free=-gpl-free ;; *any | *gpl-free) free="" ;; *) exit 1 ;; \
       esac \
    && python -m venv /tools \
    && /tools/bin/pip install --no-cache-dir --require-hashes -r build.txt \
    && python -m venv --without-pip /opt/firstword \
    && /tools/bin/pip --python /opt/firstword/bin/python install --no-cache-dir --no-deps \
       --require-hashes --only-binary :all: -r "${SERVICE}${free}.txt"
COPY pyproject.toml README.md LICENSE ./
COPY firstword firstword
COPY services services
RUN /tools/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /tools/bin/pip --python /opt/firstword/bin/python install --no-cache-dir --no-deps \
       --no-index /wheels/*.whl
COPY --chmod=755 deploy/docker/service.py /opt/firstword/bin/service
RUN sed -i '1i #!/opt/firstword/bin/python' /opt/firstword/bin/service

FROM ${PYTHON}
ARG SERVICE
LABEL org.opencontainers.image.title="firstword ${SERVICE}" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV FIRSTWORD_SERVICE=${SERVICE} \
    HOME=/tmp \
    PATH=/opt/firstword/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
COPY --from=built /opt/firstword /opt/firstword
USER 10001:10001
WORKDIR /tmp
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 CMD ["service", "healthy"]
ENTRYPOINT ["service"]
