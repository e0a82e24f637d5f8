// Package e2e runs the programs as users run them. The installer is applied with kubectl to a real API server. The
// scheduler and the controllers run as their own processes, with the arguments of their Deployments and the rights of
// their ServiceAccounts. The files of example are applied as their comments say.
//
// All tests share one cluster and leave it as they found it.
package e2e
