package main

import (
	"os"

	"github.com/urfave/cli/v2"
)

// labFlag says which lab is meant.
func labFlag() cli.Flag {
	return &cli.StringFlag{Name: "lab", DefaultText: "the only one", Usage: "the lab `LAB`, where several stand"}
}

func execCommand(stderr *os.File) *cli.Command {
	return &cli.Command{
		Name:            "exec",
		Usage:           "run a program, or a shell, in a node of a standing network",
		ArgsUsage:       "[--lab LAB] NODE [COMMAND [ARGUMENT…]]",
		SkipFlagParsing: true,
		Description: "Without a command it is your shell. The program finds the node's interfaces, the names of\n" +
			"all nodes (ping n03), and your files, folder and environment. Its terminal, pipes and\n" +
			"signals are yours, and so is its exit status; 125 is hopbed's own failure, 126 a program\n" +
			"that cannot be run, 127 one that does not exist, 128+N one that signal N ended.",
		Action: func(c *cli.Context) error { return execAction(c, stderr) },
	}
}

func setCommand() *cli.Command {
	return &cli.Command{
		Name:      "set",
		Usage:     "change links, nodes and radios of a standing network",
		ArgsUsage: "TARGET… KEY=VALUE…",
		Description: "A target is a node (n02), a link in both directions (n01-n02), one direction of it\n" +
			"(n01:n02), or all. Keys and values are those of the experiment file:\n\n" + setHelp() + "\n\n" +
			"An order is carried out as a whole, or not at all; the answer says what was and what is.",
		Flags: []cli.Flag{labFlag(),
			&cli.BoolFlag{Name: "wire", DisableDefaultText: true, Usage: "of two nodes with a wire that also hear each other: the wire"},
			&cli.BoolFlag{Name: "radio", DisableDefaultText: true, Usage: "the radio link of such two"},
			&cli.BoolFlag{Name: "json", DisableDefaultText: true, Usage: "the answer as JSON"},
		},
		Action: setAction,
	}
}

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "show the networks that stand; with a name, or where there is one, its nodes and links",
		ArgsUsage: "[LAB]",
		Flags:     []cli.Flag{&cli.BoolFlag{Name: "json", DisableDefaultText: true, Usage: "as JSON"}},
		Action:    statusAction,
	}
}

func downCommand() *cli.Command {
	return &cli.Command{
		Name:      "down",
		Usage:     "take a standing network down, with everything that runs in it",
		ArgsUsage: "[LAB]",
		Flags:     []cli.Flag{&cli.BoolFlag{Name: "all", DisableDefaultText: true, Usage: "all that stand"}},
		Action:    downAction,
	}
}
