# The retraining job, once or on a schedule. Build from the top of the repository:
# docker build -f docker/trainer.Dockerfile .
# The first stage is that of api.Dockerfile, verbatim, so that both images share its layers.
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
LABEL org.opencontainers.image.title="kairos-trainer" \
      org.opencontainers.image.description="Kairos: the retraining job" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="MIT"
RUN groupadd --gid 10001 kairos \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --no-log-init \
        --shell /usr/sbin/nologin kairos \
    && install --directory --owner=10001 --group=10001 \
        /var/lib/kairos /var/lib/kairos/bundles /var/lib/kairos/runs
COPY --from=build /opt/kairos /opt/kairos
COPY --chmod=0755 docker/schedule.sh /opt/kairos/bin/on-schedule
ENV PATH=/opt/kairos/bin:${PATH} \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    KAIROS_BUNDLE_STORE=/var/lib/kairos/bundles \
    KAIROS_DATABASE_URL=sqlite:////var/lib/kairos/kairos.db
WORKDIR /var/lib/kairos
USER 10001:10001
CMD ["kairos", "retrain", "--recipe", "demo", "--runs", "/var/lib/kairos/runs"]
