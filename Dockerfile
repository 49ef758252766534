# The `askance` command in an image: docker build --tag askance . (docs/deployment.md).
# No key and no settings go in; .dockerignore lets nothing but these sources through.
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
# Extras of pyproject.toml, with commas; `local` and `vllm` bring torch, and gigabytes.
ARG EXTRAS=agent,arrow,postgres
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY docs/reference docs/reference
COPY askance askance
# The environment has no pip: that of the image installs into it.
RUN python -m venv --without-pip /opt/askance
RUN pip --python /opt/askance/bin/python install --no-cache-dir ".[${EXTRAS}]"

FROM python:${PYTHON}-slim
COPY --from=build /opt/askance /opt/askance
ENV PATH=/opt/askance/bin:$PATH HOME=/tmp
# The project is mounted here; its files belong to whoever `--user` names.
WORKDIR /work
USER 1000:1000
ENTRYPOINT ["askance"]
CMD ["--help"]
