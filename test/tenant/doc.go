// Package tenant tries what a user could try who may edit one namespace only. The control plane has the roles and the
// policies of the installer, and the controllers and the webhook server run with their rights. The tenant has the
// ClusterRole edit of Kubernetes. docs/security.md says which test shows what.
package tenant
