import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { expectAccessible, missing, useBrowser } from '../../support/browser.ts'
import { createTestJudge, scored, startJob } from '../../support/evaluation/batches.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'

const host = await keep(startRunning())
const origin = await host.listen()
const PHONE = { width: 390, height: 844 }

/** How far the page is wider than the window, in pixels. */
const overflow = (page: Page) =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)

async function makeJudged() {
  const name = `Answers ${randomUUID()}`
  const nodes = [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }]
  const graph = { teamId: host.teamId, name, nodes, edges: [] }
  const { id: workflowId } = await host.ask<{ id: string }>('POST', '/api/workflows', graph)
  const judge = `Judge ${randomUUID()}`
  const { id: credentialId } = await host.ask<{ id: string }>('POST', '/api/credentials', {
    ...{ teamId: host.teamId, name: judge, type: 'OPENAI_COMPATIBLE' },
    data: { apiKey: 'k', baseUrl: 'http://127.0.0.1:9/v1' },
  })
  return { workflowId, judge, credentialId }
}

describe.skipIf(missing)('the evaluation of a workflow', () => {
  const browser = useBrowser(() => origin)
  const { signIn, heading } = browser
  let page: Page
  beforeEach(() => {
    page = browser.page
  })

  test('who judges its runs is set; what is wrong is said at its field; it is taken back again', {
    tags: 'long',
  }, async () => {
    const { workflowId, judge, credentialId } = await makeJudged()
    await signIn(`#/evaluation?workflowId=${workflowId}&tab=settings`)
    await heading('Evaluation')
    await page.getByLabel('A model judges runs').check()
    await page.getByLabel('Judge', { exact: true }).selectOption('custom')
    await page.getByLabel('Model', { exact: true }).fill('judge')
    await page.getByLabel('Credential', { exact: true }).selectOption(judge)
    await page.getByLabel('Lowest score that passes').fill('9')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('must be at most 5').waitFor()
    await expectAccessible(page)
    await page.getByLabel('Lowest score that passes').fill('3.5')
    await page.getByLabel('Safety').uncheck()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved', { exact: true }).waitFor()
    const path = `/api/monitoring/workflow/${workflowId}/eval-config`
    expect(await host.ask('GET', path)).toMatchObject({
      ...{ evalEnabled: true, evalProvider: 'custom', evalModel: 'judge', evalCredentialId: credentialId },
      ...{ evalFailureThreshold: 3.5, evalDimensions: ['groundedness', 'relevance'] },
      evalSamplingRate: null,
    })
    await page.getByRole('button', { name: "Use the team's settings" }).click()
    await page.getByRole('dialog').getByRole('button', { name: "Use the team's settings" }).click()
    await page.getByText('What the team has set counts').waitFor()
    expect(await host.ask('GET', path)).toMatchObject({ id: null, evalModel: null })
    await page.getByRole('tab', { name: 'Runs' }).click()
    await page.getByText('No runs were judged').waitFor()
  })

  test('the team has settings and dimensions of its own, which workflows then offer', {
    tags: 'long',
  }, async () => {
    const { workflowId } = await makeJudged()
    await signIn('#/evaluation?tab=dimensions')
    await page.getByRole('button', { name: 'New dimension' }).click()
    await page.getByLabel('Name').fill('safety')
    await page.getByLabel('Rubric').fill('How friendly it is. 5: warm. 1: rude.')
    await page.getByRole('button', { name: 'Save the dimension' }).click()
    await page.getByText('is a dimension that every team has').waitFor()
    await expectAccessible(page)
    await page.getByLabel('Name').fill('tone')
    await page.getByRole('button', { name: 'Save the dimension' }).click()
    await page.getByRole('table', { name: 'Dimensions' }).getByText('Tone').waitFor()
    await page.getByRole('tab', { name: "The team's settings" }).click()
    await page.getByLabel('Percent of the runs').fill('35')
    await page.getByLabel('Tone').check()
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('button', { name: 'Take them back' }).waitFor()
    await expectAccessible(page)
    await page.setViewportSize(PHONE)
    expect(await overflow(page)).toBe(0)
    await page.goto(`${origin}/#/evaluation?workflowId=${workflowId}&tab=settings`)
    await page.getByText('What the team has set counts').waitFor()
    expect(await page.getByLabel('Percent of the runs').inputValue()).toBe('35')
    expect(await page.getByLabel('Tone').isChecked()).toBe(true)
    await page.getByRole('tab', { name: "The team's settings" }).click()
    await page.getByRole('button', { name: 'Take them back' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Take them back' }).click()
    const path = `/api/monitoring/teams/${host.teamId}`
    await expect.poll(() => host.ask('GET', `${path}/eval-config`)).toMatchObject({ id: null })
    await page.getByRole('tab', { name: 'Dimensions' }).click()
    await page.getByRole('button', { name: 'More about tone' }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Delete the dimension' }).click()
    await page.getByText('No dimensions of its own').waitFor()
    expect(await host.ask('GET', `${path}/eval-dimensions`)).toEqual({ dimensions: [] })
  })

  test('runs that were judged are listed with their scores, and summed up', async () => {
    const { workflowId } = await makeJudged()
    const executionId = await host.execute(workflowId)
    await host.ended(executionId)
    const id = randomUUID()
    const { db } = host.store
    await db
      .insertInto('evaluations')
      .values({
        ...{ id, teamId: host.teamId, workflowId, executionId, status: 'SCORED', judgedAt: new Date() },
        ...{ model: 'judge', provider: 'custom', composite: 2, failureThreshold: 3, failed: true },
      })
      .execute()
    await db
      .insertInto('evaluationScores')
      .values({
        ...{ evaluationId: id, dimension: 'relevance', score: 2, explanation: 'It misses <b>it</b>' },
        ...{ cost: 0.001, inputTokens: 10, outputTokens: 5 },
      })
      .execute()
    await signIn(`#/evaluation?workflowId=${workflowId}`)
    const table = page.getByRole('table', { name: 'Judged runs' })
    await table.getByText('Too low').waitFor()
    await table.getByText('It misses <b>it</b>').waitFor()
    await page.getByText('of 1 judged in 30 days').waitFor()
    await expectAccessible(page)
    await page.setViewportSize(PHONE)
    expect(await overflow(page)).toBe(0)
    await page.getByLabel('Show', { exact: true }).selectOption('false')
    await page.getByText('No run fits this filter').waitFor()
  })

  test('a batch of pasted cases is judged while one looks, filtered, compared, and deleted', {
    tags: 'long',
  }, async () => {
    const { workflowId, judge } = await makeJudged()
    let grade = 2
    startJob(host, createTestJudge(({ material }) => scored(material.output === 'bad' ? 1 : grade)).judge)
    await signIn(`#/evaluation?workflowId=${workflowId}&tab=batches`)
    const fill = async (name: string, cases: object[]) => {
      await page.getByRole('button', { name: 'New batch' }).click()
      await page.getByLabel('Name').fill(name)
      const editor = page.getByRole('textbox', { name: 'Cases' })
      await editor.fill(JSON.stringify(cases))
      await page.getByLabel('Judge', { exact: true }).selectOption('custom')
      await page.getByLabel('Model', { exact: true }).fill('judge')
      await page.getByLabel('Credential', { exact: true }).selectOption(judge)
      await page.getByLabel('Relevance').check()
    }
    const start = page.getByRole('button', { name: 'Start the batch' })
    await fill('First', [{ input: { at: 1 } }])
    await start.click()
    await page.getByText('is required unless runWorkflow is true').waitFor()
    await expectAccessible(page)
    const cases = [
      { input: { at: 1 }, output: 'good' },
      { input: { at: 2 }, output: '<i>good</i>' },
      { input: { at: 3 }, output: 'bad' },
    ]
    await page.getByRole('textbox', { name: 'Cases' }).fill(JSON.stringify(cases))
    await start.click()
    await heading('First')
    await page.getByText('Completed', { exact: true }).waitFor()
    grade = 5
    await page.getByRole('navigation', { name: 'Where you are' }).getByText('Batches').click()
    await fill('Second', cases)
    await start.click()
    await heading('Second')
    await page.getByText('Completed', { exact: true }).waitFor()
    await page.getByText('66.7%').first().waitFor()
    await page.getByRole('table', { name: 'Scores by dimension' }).getByText('Relevance').waitFor()
    await page.getByLabel('Compare with').selectOption('First')
    await page.getByText('2 gained, 0 lost').waitFor()
    await expectAccessible(page)

    await page.getByLabel('Show', { exact: true }).selectOption('failed')
    await page.getByText('1–1 of 1').waitFor()
    await page.getByRole('button', { name: 'Show case 3' }).click()
    await page.getByRole('dialog').getByText('bad', { exact: true }).waitFor()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Close' }).click()
    const exported = page.waitForEvent('download')
    await page.getByRole('link', { name: 'CSV' }).click()
    expect((await exported).suggestedFilename()).toMatch(/^batch-.*\.csv$/)
    await page.setViewportSize(PHONE)
    expect(await overflow(page)).toBe(0)

    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Delete the batch' }).click()
    await page.getByRole('table', { name: 'Batches' }).getByText('First').waitFor()
    const { content } = await host.ask<{ content: object[] }>(
      'GET',
      `/api/workflows/${workflowId}/batch-eval`,
    )
    expect(content).toMatchObject([{ name: 'First', passedCases: 0 }])
  })

  test('a batch under way shows how far it is, and is cancelled', { tags: 'long' }, async () => {
    const { workflowId, credentialId } = await makeJudged()
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const { judge } = createTestJudge(async ({ material }) => {
      if (material.output !== 'fast') await held
      return scored(5)
    })
    startJob(host, judge)
    const path = `/api/workflows/${workflowId}/batch-eval`
    const { id } = await host.ask<{ id: string }>('POST', path, {
      ...{ judgeProvider: 'custom', judgeModel: 'judge', judgeCredentialId: credentialId },
      ...{ name: 'Long', evalDimensions: ['relevance'] },
      testCases: [
        { input: {}, output: 'fast' },
        { input: {}, output: 'slow' },
      ],
    })
    try {
      await signIn(`#/evaluation/${workflowId}/${id}`)
      await page.getByText('1 of 2 cases').waitFor()
      await expectAccessible(page)
      await page.getByRole('button', { name: 'Cancel', exact: true }).click()
      await page.getByRole('button', { name: 'Cancel the batch' }).click()
      await page.getByText('Cancelled', { exact: true }).first().waitFor()
      expect(await host.ask('GET', `${path}/${id}`)).toMatchObject({ status: 'CANCELLED' })
    } finally {
      release()
    }
  })
})
