-- The arguments of lend.lua and collect.lua begin as those of list.lua do. A list names its
-- keys once each; what is asked about KEYS[i] is its i-th entry.

local raw, now = clock(ARGV[1], ARGV[2], ARGV[3])
local margin = ARGV[4] + 0
local next = 5

local function number()
  next = next + 1
  return ARGV[next - 1] + 0
end

local function argument()
  next = next + 1
  return ARGV[next - 1]
end

-- plans reads how many plans there are and each of them.
local function readPlans(more)
  local known = {}
  for i = 1, number() do
    local text, since, v = argument(), number(), {}
    for j = 1, number() do v[j] = number() end
    known[i] = plan(text, v, since)
    more(known[i])
  end
  return known
end

local out = {raw, now}
local n = 2
