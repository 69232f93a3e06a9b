-- Reports of what was admitted. ARGV: see args.lua. Of each key: its plan, instance, number,
-- interval, and how many parts there are: of each the start and the end of its window, and the
-- units. Reply: raw, now, of each key 1 and its answer, or why it was not run and a detail.

local known = readPlans(function() end)
local states = {}

for i = 1, #KEYS do
  local p = known[number()]
  local f = {instance = number(), number = number(), interval = number(), parts = {}}
  for j = 1, 3 * number() do f.parts[j] = number() end
  local s, why, detail = load(KEYS[i], p)
  if not s then
    out[n + 1], out[n + 2] = why, detail
    n = n + 2
  elseif p.cuts and (now < p.cuts[1] or max(now, s.at, s.seen and s.seen.last or 0) >= p.cuts[#p.cuts]) then
    out[n + 1], out[n + 2] = -5, 0
    n = n + 2
  else
    if s.lease and s.ring then lent(p, s, now) end
    local say = s.rolls and flushLent or flush
    if s.text ~= p.text and not s.rolls then adopt(p, s, now) end
    out[n + 1] = 1
    out[n + 2], out[n + 3], out[n + 4], out[n + 5], out[n + 6], out[n + 7] = say(p, s, now, f)
    n = n + 7
    s.plan, states[i] = p, s
  end
end
for i, s in pairs(states) do write(KEYS[i], s, s.plan, now, margin) end
return out
