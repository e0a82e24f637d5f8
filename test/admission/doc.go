// Package admission tests the webhook server with a real API server: the real program with the rights of the
// installer, the policies that need no program, and what happens when no server answers.
package admission
