# The voice, for SageMaker and for anywhere else.
#   docker build -f deploy/docker/inference.Dockerfile .
# FLAVOUR: cpu, cuda (onnxruntime with CUDA 13, gigabytes), or torch (with CUDA 13, more of them).
# LICENCES: any, or gpl-free, without espeak and PyAV: THIRD_PARTY.md says what that gives up.
# EXTRAS: chinese, japanese, or "chinese japanese": 50 MB and 250 MB more.
# WEIGHTS: none, when they are mounted at /opt/ml/model, as SageMaker does; or baked, from
#   build/weights (`firstword voices fetch --all`, then copy ~/.cache/firstword/kokoro-v1.0 there).
#   Every file of it is checked against its pinned sha256.
# A proxy's certificate goes in as a secret that stays out of the image: --secret id=ca,src=FILE.
ARG PYTHON=python:3.12-slim-bookworm
ARG FLAVOUR=cpu
ARG WEIGHTS=none

FROM ${PYTHON} AS weights-none
RUN mkdir -p /opt/ml/model

FROM ${PYTHON} AS weights-baked
COPY firstword/assets.json deploy/docker/check_weights.py /src/
COPY build/weights /opt/ml/model
RUN ["python", "/src/check_weights.py", "/src/assets.json", "/opt/ml/model"]

# hadolint ignore=DL3006
FROM weights-${WEIGHTS} AS weights

FROM ${PYTHON} AS flavour-cpu
ENV FIRSTWORD_INFERENCE_ENGINE=onnx
FROM flavour-cpu AS flavour-cuda
FROM ${PYTHON} AS flavour-torch
ENV FIRSTWORD_INFERENCE_ENGINE=torch

FROM ${PYTHON} AS built
ARG FLAVOUR
ARG LICENCES=any
ARG EXTRAS=""
ENV PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY deploy/docker/requirements/build.txt deploy/docker/requirements/inference-${FLAVOUR}*.txt ./
RUN --mount=type=secret,id=ca \
    if [ -f /run/secrets/ca ]; then export PIP_CERT=/run/secrets/ca; fi \
    && case "${LICENCES}" in any) free="" ;; gpl-free) free=-gpl-free ;; *) exit 1 ;; esac \
    && python -m venv /tools \
    && /tools/bin/pip install --no-cache-dir --require-hashes -r build.txt \
    && python -m venv --without-pip /opt/firstword \
    && /tools/bin/pip --python /opt/firstword/bin/python install --no-cache-dir --no-deps \
       --require-hashes --only-binary :all: -r "inference-${FLAVOUR}${free}.txt" \
    && if [ -n "${free}" ]; then \
         rm -r /opt/firstword/lib/python3*/site-packages/misaki/vi*; \
       fi
# What has no wheel is built of its pinned source.
COPY deploy/docker/requirements/extra-*.txt ./
RUN --mount=type=secret,id=ca \
    if [ -f /run/secrets/ca ]; then export PIP_CERT=/run/secrets/ca; fi \
    && for extra in ${EXTRAS}; do \
         /tools/bin/pip wheel --no-cache-dir --no-deps --require-hashes --no-build-isolation \
           --only-binary :all: --no-binary jieba,unidic-lite \
           --wheel-dir "/extras/${extra}" -r "extra-${extra}.txt" \
         && /tools/bin/pip --python /opt/firstword/bin/python install --no-cache-dir --no-deps \
           --no-index "/extras/${extra}"/*.whl \
         || exit 1; \
       done \
    && rm -rf /extras

FROM built AS finished
COPY pyproject.toml README.md LICENSE ./
COPY firstword firstword
COPY services services
RUN /tools/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /tools/bin/pip --python /opt/firstword/bin/python install --no-cache-dir --no-deps \
       --no-index --target /app /wheels/*.whl
COPY --chmod=755 deploy/docker/service.py /app/bin/service
RUN sed -i '1i #!/opt/firstword/bin/python' /app/bin/service

# Three layers, of which only the last and smallest changes with our code. SageMaker starts its
# containers as root, with only /tmp to write to; elsewhere give it a user, as compose.yaml does.
# hadolint ignore=DL3006
FROM flavour-${FLAVOUR}
LABEL com.amazonaws.sagemaker.capabilities.bidirectional-streaming="true" \
      org.opencontainers.image.title="firstword inference" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV FIRSTWORD_INFERENCE_HOST=0.0.0.0 \
    FIRSTWORD_MODEL_DIR=/opt/ml/model \
    FIRSTWORD_SERVICE=inference \
    HOME=/tmp \
    ORT_DISABLE_TELEMETRY=1 \
    PATH=/app/bin:/opt/firstword/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONPATH=/app \
    PYTHONUNBUFFERED=1
COPY --from=weights /opt/ml/model /opt/ml/model
COPY --from=built /opt/firstword /opt/firstword
COPY --from=finished /app /app
WORKDIR /tmp
EXPOSE 8080
HEALTHCHECK --interval=15s --timeout=5s --start-period=120s --retries=3 CMD ["service", "healthy"]
ENTRYPOINT ["service"]
CMD ["serve"]
