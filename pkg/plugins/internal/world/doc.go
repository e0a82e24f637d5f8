// Package world is a model with one plugin in force, for the tests of plugins: a cluster made of the objects users
// write, and sessions on it. What a test asks, it asks the session, as an action would;
// [World.Vote] asks whether pods may leave.
package world
