module hekla.sh/hekla

go 1.26.0
