# The service. Build from the top of the repository: docker build -f docker/api.Dockerfile .
# The first stage is that of trainer.Dockerfile, verbatim, so that both images share its layers.
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
# The index of PyTorch's CPU builds; the default builds contain gigabytes of GPU libraries.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
RUN python -m venv --without-pip /opt/kairos
# Layers that change least come first: torch, the other pinned packages, Kairos. Every file that pip
# installs must have a hash that is listed here.
COPY docker/torch-cpu.txt docker/requirements.txt docker/object-store.txt ./
RUN pip --python /opt/kairos/bin/python install --index-url "${TORCH_INDEX}" --no-deps \
        --require-hashes -r torch-cpu.txt \
    && rm -rf /opt/kairos/lib/python3.11/site-packages/torch/include \
        /opt/kairos/lib/python3.11/site-packages/torch/test \
    && find /opt/kairos/lib/python3.11/site-packages/torch/bin -type f \
        ! -name torch_shm_manager -delete
RUN pip --python /opt/kairos/bin/python install --no-deps --require-hashes -r requirements.txt \
        -r object-store.txt
COPY . .
# With the setuptools that is installed: a build environment would download one without a hash.
RUN pip --python /opt/kairos/bin/python install --no-deps --no-build-isolation .

FROM ${PYTHON_IMAGE}
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="kairos-api" \
      org.opencontainers.image.description="Kairos: time-aware recommendations over HTTP" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="MIT"
RUN groupadd --gid 10001 kairos \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --no-log-init \
        --shell /usr/sbin/nologin kairos \
    && install --directory --owner=10001 --group=10001 \
        /var/lib/kairos /var/lib/kairos/bundles /var/lib/kairos/erasures /var/lib/kairos/runs
COPY --from=build /opt/kairos /opt/kairos
COPY docker/probe.py /opt/kairos/share/probe.py
ENV PATH=/opt/kairos/bin:${PATH} \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    OMP_NUM_THREADS=1 \
    MKL_NUM_THREADS=1 \
    OPENBLAS_NUM_THREADS=1 \
    KAIROS_HOST=0.0.0.0 \
    KAIROS_PORT=8000 \
    KAIROS_LOG_FORMAT=json \
    KAIROS_BUNDLE_STORE=/var/lib/kairos/bundles \
    KAIROS_DATABASE_URL=sqlite:////var/lib/kairos/kairos.db
WORKDIR /var/lib/kairos
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "/opt/kairos/share/probe.py"]
CMD ["python", "-m", "app.server"]
