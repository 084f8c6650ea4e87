// The images for every platform: make release-images, or
// REGISTRY=ghcr.io/you TAG=0.1.0 docker buildx bake --push
variable "REGISTRY" { default = "localhost/proofgate" }
variable "TAG" { default = "dev" }
variable "PLATFORMS" { default = "linux/amd64,linux/arm64" }

group "default" { targets = ["worker", "operator"] }
group "wheels" { targets = ["worker-wheels", "operator-wheels"] }

target "worker-build" {
  context    = "."
  dockerfile = "gateway/Dockerfile"
  platforms  = split(",", PLATFORMS)
}

target "operator-build" {
  inherits   = ["worker-build"]
  dockerfile = "operator/Dockerfile"
}

target "published" {
  attest = ["type=provenance,mode=max", "type=sbom"]
  labels = {
    "org.opencontainers.image.licenses" = "Apache-2.0"
    "org.opencontainers.image.source"   = "https://github.com/proofgate/proofgate"
    "org.opencontainers.image.version"  = TAG
  }
}

target "worker" {
  inherits = ["worker-build", "published"]
  tags     = ["${REGISTRY}/proofgate-worker:${TAG}"]
}

target "operator" {
  inherits = ["operator-build", "published"]
  tags     = ["${REGISTRY}/proofgate-operator:${TAG}"]
}

// The wheels as the images hold them, one folder for each platform.
target "worker-wheels" {
  inherits = ["worker-build"]
  target   = "wheels"
  output   = ["type=local,dest=dist/worker"]
}

target "operator-wheels" {
  inherits = ["operator-build"]
  target   = "wheels"
  output   = ["type=local,dest=dist/operator"]
}
