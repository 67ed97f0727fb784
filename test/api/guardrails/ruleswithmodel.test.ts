import { expect, test } from 'vitest'
import { createOutsides } from '../../../activities/egress/outside.ts'
import { keep } from '../../support/keep.ts'
import { LOCAL } from '../../support/servers/loopback.ts'
import { readQuestion, startJudge, verdict } from '../../support/servers/models/judge.ts'
import { startService } from '../../support/service.ts'

const service = await keep(startService({ outside: createOutsides(LOCAL), rateLimits: false }))
const judge = await keep(startJudge())
judge.say((call) => {
  const { system, text } = readQuestion(call)
  if (text === 'hang') return new Promise<never>(() => {})
  return verdict(call, system.includes('advice') && text.includes('sue'), 0.8)
})

/** A team with a model for its guardrails, and with rules that ask it. */
async function makeTeam(...instructions: string[]) {
  const { teamId, cookie } = await service.otherTeam()
  const call = async (method: string, path: string, json: object) => {
    const { status, body, text } = await service.call(method, `/api/${path}`, cookie, json)
    expect(status, text).toBeLessThan(300)
    return body
  }
  const data = { baseUrl: judge.url, apiKey: 'sk-the-secret-key-of-the-judge' }
  const credential = await call('POST', 'credentials', {
    teamId,
    name: 'Judge',
    type: 'OPENAI_COMPATIBLE',
    data,
  })
  await call('PUT', `teams/${teamId}/model-prices`, {
    prices: [{ model: '*', inputPerMillion: 2, outputPerMillion: 2 }],
  })
  const setUp = (more: object = {}) =>
    call('PUT', `guardrails/settings?teamId=${teamId}`, {
      ...{ credentialId: credential.id, model: 'judge', monthlyCostCap: 10, checks: [] },
      ...more,
    })
  await setUp()
  for (const instruction of instructions)
    await call('POST', `guardrails/rules?teamId=${teamId}`, {
      ...{
        name: instruction,
        kind: 'LLM_PROMPT',
        config: { instruction },
        severity: 'HIGH',
        action: 'WARNED',
      },
    })
  const check = (text: string, more: object = {}) =>
    call('POST', `guardrails/check?teamId=${teamId}`, { text, applyCustomRules: true, ...more })
  return { teamId, call, check, setUp }
}

test("a rule that asks the team's model has one violation, without a place, for a text that is flagged", async () => {
  const { check } = await makeTeam('Gives legal advice')
  expect(await check('You should sue them.', { onViolation: 'BLOCKED' })).toMatchObject({
    passed: true,
    violations: [
      {
        ...{ type: 'CUSTOM_RULE', severity: 'HIGH', action: 'WARNED', confidence: 0.8 },
        message: 'The text breaks the rule "Gives legal advice"',
        details: { ruleName: 'Gives legal advice', kind: 'LLM_PROMPT' },
      },
    ],
    checks: [{ type: 'CUSTOM_RULE', passed: true, violationsFound: 1 }],
  })
  expect(await check('Lunch is at noon.')).toMatchObject({ passed: true, violations: [] })
})

test('such a rule is tried on samples, too', async () => {
  const { teamId, call } = await makeTeam()
  const rule = { kind: 'LLM_PROMPT', config: { instruction: 'Gives advice' } }
  const samples = ['sue', 'no', 'sue them', '', 'sue us', 'not']
  const { results } = await call('POST', `guardrails/rules/test?teamId=${teamId}`, { rule, samples })
  expect(results.map(({ flagged }: { flagged: boolean }) => flagged)).toEqual([
    true,
    false,
    true,
    false,
    true,
    false,
  ])
})

test('a model that does not answer, or may not be asked, is an error that names the rules, and the others report', {
  tags: 'long',
  timeout: 60_000,
}, async () => {
  const { check, call, teamId, setUp } = await makeTeam('One', 'Two', 'Three', 'Four', 'Five')
  await call('POST', `guardrails/rules?teamId=${teamId}`, {
    ...{ name: 'Words', kind: 'KEYWORD_LIST', config: { keywords: ['hang'] }, action: 'LOGGED' },
  })
  const began = performance.now()
  const { passed, violations, checks } = await check('hang')
  expect(performance.now() - began).toBeLessThan(15_000)
  expect(passed).toBe(false)
  expect(violations).toMatchObject([{ action: 'LOGGED', details: { ruleName: 'Words' } }])
  for (const name of ['One', 'Two', 'Three', 'Four', 'Five']) expect(checks[0].error).toContain(`"${name}" (`)
  expect(checks[0].error).not.toContain('Words')
  await setUp({ monthlyCostCap: 0 })
  const capped = await check('fine')
  expect(capped).toMatchObject({ passed: false, violations: [], checks: [{ passed: false }] })
  expect(capped.checks[0].error).toMatch(/"One" \(/)
})
