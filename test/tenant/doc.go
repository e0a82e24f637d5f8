// Package tenant tries what somebody could try who may edit one namespace, and no more: the control plane has the roles and
// the policies of the installer, the controllers and the webhook server run with the rights it gives them, and the tenant has
// the ClusterRole edit of Kubernetes. docs/security.md says which test shows what.
package tenant
