# plas in an image: `docker build -t plas .`, then `docker run --rm -v "$PWD:/work" plas run --algo nsga2` (docs/install.md).
FROM python:3.13.7-slim-bookworm AS packages
WORKDIR /source
# What PLAS needs comes before PLAS, so that a change of the code installs nothing again.
COPY pyproject.toml constraints.txt ./
RUN python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" > needed.txt \
    && pip install --no-cache-dir --only-binary=:all: -c constraints.txt -r needed.txt \
    && useradd --create-home --uid 1000 plas \
    && install -d -o plas -g plas /work

# For .devcontainer: the editor mounts the checkout and installs it with its tools.
FROM packages AS development
RUN apt-get update \
    && apt-get install -y --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/*
ENV PATH=/home/plas/.local/bin:$PATH
USER plas

FROM packages
COPY README.md LICENSE ./
COPY configs configs
COPY search_spaces search_spaces
COPY objectives objectives
COPY nas nas
COPY plugins/board plugins/board
COPY plugins/fit plugins/fit
COPY plugins/paper plugins/paper
COPY plugins/range plugins/range
COPY plugins/stacks plugins/stacks
COPY plugins/train plugins/train
RUN pip install --no-cache-dir --no-deps .
USER plas
WORKDIR /work
ENTRYPOINT ["plas"]
CMD ["--help"]
