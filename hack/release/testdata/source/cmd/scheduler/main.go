package main

import "hekla.sh/hekla/internal/version"

func main() { println("hekla-scheduler", version.Version) }
