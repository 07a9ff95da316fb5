# CPU by default, with OpenVINO for CPUs that have BF16: an image does not know where it will run.
# `--build-arg EXTRA=gpu` installs ONNX Runtime with CUDA and cuDNN from wheels.
FROM python:3.11-slim AS build
ARG EXTRA=cpu,openvino
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY sameface sameface
COPY api api
COPY model model
COPY training training
RUN python -m venv /opt/sameface && /opt/sameface/bin/pip install --no-cache-dir ".[${EXTRA},arrow,postgres]"

FROM python:3.11-slim
RUN useradd --create-home --uid 10001 sameface && install -d -o sameface /data
COPY --from=build /opt/sameface /opt/sameface
ENV PATH=/opt/sameface/bin:$PATH PYTHONUNBUFFERED=1 SAMEFACE_DATA=/data SAMEFACE_HOST=0.0.0.0
USER sameface
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ.get(\"SAMEFACE_PORT\", 8000)}/health/ready', timeout=2)"]
# Pulling is a look at a hash when the models are already in the volume.
CMD ["sh", "-c", "sameface pull && exec sameface serve"]
