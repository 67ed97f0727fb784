import { expect, test } from 'vitest'
import { checkText } from '../../../activities/guardrails/check.ts'
import type { CheckRequest, Guardrails } from '../../../activities/guardrails/request.ts'
import type { DetectionResult } from '../../../activities/guardrails/thread.ts'

const found = (kind: string, start: number, end: number, confidence = 0.9) => ({
  kind,
  start,
  end,
  confidence,
  rule: 'test',
})

/** Checks whose detectors say what is given. */
function say(results: DetectionResult[], onError: Guardrails['onError'] = 'closed'): Guardrails {
  const pool = {
    run: async () => results,
    apply: async () => [],
    hold: <T>(_: string, _length: number, work: () => Promise<T>) => work(),
    close: async () => {},
  }
  return { pool, onError }
}

const request: CheckRequest = {
  team: 'a',
  workflow: 'a',
  text: 'ada@example.com and more',
  detection: { PII_REDACTION: { kinds: ['email'] }, PROMPT_INJECTION: { sensitivity: 0.7 } },
  onViolation: 'BLOCKED',
}

test('violations of all checks are sorted by where they are', async () => {
  const results: DetectionResult[] = [
    {
      type: 'PROMPT_INJECTION',
      ms: 1.6,
      findings: [found('PROMPT_INJECTION', 16, 19), found('PROMPT_INJECTION', 0, 3)],
    },
    { type: 'PII_REDACTION', ms: 0.4, findings: [found('email', 0, 15)] },
  ]
  const { violations, passed, checks } = await checkText(say(results), request)
  expect(violations.map(({ type, details }) => [type, details.start])).toEqual([
    ['PROMPT_INJECTION', 0],
    ['PII_REDACTION', 0],
    ['PROMPT_INJECTION', 16],
  ])
  expect(passed).toBe(false)
  expect(checks).toEqual([
    { type: 'PROMPT_INJECTION', passed: false, violationsFound: 2, durationMs: 2 },
    { type: 'PII_REDACTION', passed: true, violationsFound: 1, durationMs: 0 },
  ])
})

test('of personal data that overlaps one finding is kept, and redacted once', async () => {
  const findings = [found('phone', 4, 15), found('email', 0, 15)]
  const { redactedContent, violations } = await checkText(
    say([{ type: 'PII_REDACTION', ms: 0, findings }]),
    request,
  )
  expect(redactedContent).toBe('[EMAIL] and more')
  expect(violations).toHaveLength(1)
})

test.each(['open', 'closed'] as const)(
  'with GUARDRAIL_ON_ERROR=%s a check that failed decides so',
  async (onError) => {
    const results: DetectionResult[] = [
      { type: 'PII_REDACTION', ms: 0, error: 'It took too long' },
      { type: 'PROMPT_INJECTION', ms: 0, findings: [] },
    ]
    const body = await checkText(say(results, onError), request)
    expect(body.passed).toBe(onError === 'open')
    expect(body.redactedContent).toBeUndefined()
    expect(body.checks[0]).toMatchObject({
      passed: onError === 'open',
      error: 'It took too long',
      violationsFound: 0,
    })
    expect(body.checks[1]!.passed).toBe(true)
    const blocked = await checkText(
      say([{ type: 'CONTENT_FILTER', ms: 0, findings: [found('hate', 0, 3)] }], onError),
      request,
    )
    expect(blocked.passed).toBe(false)
  },
)

test('whoever asked waits no longer than a process without schemas takes to say so', async () => {
  const body = await checkText(say([]), { ...request, detection: {}, schema: { type: 'string' } })
  expect(body).toMatchObject({
    passed: false,
    checks: [{ type: 'SCHEMA_VALIDATION', error: expect.any(String) }],
  })
})
