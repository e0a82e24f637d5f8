// Say prints the version of its build.
package main

import "hekla.sh/hekla/internal/version"

func main() { println(version.Version) }
