# One image with the three programs; the installer's Deployments say which of them to run. It is for who has Docker and no Go:
# make image writes the same programs into an image without a container engine.
#
#   docker build --build-arg VERSION=v1 -t hekla:latest .
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS TARGETARCH VERSION=unknown
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH GOFLAGS=-trimpath make build VERSION=$VERSION

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /src/bin/ /
ENTRYPOINT ["/hekla"]
