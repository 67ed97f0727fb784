import { api, keepRows, read } from '../../data/client.ts'
import { resource } from '../../data/resource.ts'
import type { Period } from '../data.ts'

const { useRead, write } = resource('monitoring')

const team = api.api.monitoring.teams[':teamId']

/** The types of credentials that models are called with, as people name them. */
export const MODEL_PROVIDERS: Record<string, string> = {
  OPENAI: 'OpenAI',
  ANTHROPIC: 'Anthropic',
  AZURE_OPENAI: 'Azure OpenAI',
  GOOGLE_AI: 'Google AI',
  OPENAI_COMPATIBLE: 'OpenAI-compatible',
  DEMO: 'Demo',
}

async function readPrices(teamId: string) {
  return (await read(team.prices.$get({ param: { teamId } }))).prices
}

export type Price = Awaited<ReturnType<typeof readPrices>>[number]

/** The team's own prices, in their order; for other models the price list of the service counts. */
export function usePrices(teamId: string) {
  return useRead([teamId, 'prices'], () => readPrices(teamId))
}

/** Replaces all of them. */
export async function updatePrices(teamId: string, prices: Price[]) {
  const json = { prices } as Parameters<typeof team.prices.$put>[0]['json']
  return write(read(team.prices.$put({ param: { teamId }, json })), teamId)
}

/** Which nodes have called models, those that cost most first. */
export function useNodeUsage(teamId: string, span: Period) {
  return useRead(
    [teamId, 'by-node', span],
    async () => (await read(team['token-usage']['by-node'].$get({ param: { teamId }, query: span }))).nodes,
    keepRows,
  )
}

/** What agents elsewhere have sent of their work. */
export function useTelemetry(teamId: string, span: Period) {
  return useRead(
    [teamId, 'telemetry', span],
    () => read(team.telemetry.$get({ param: { teamId }, query: span })),
    keepRows,
  )
}

/** Whether what workflows work on, and how users sound, is as it was. */
export function useShifts(teamId: string) {
  return useRead([teamId, 'shifts'], async () => {
    const param = { teamId }
    const [drift, sentiment] = await Promise.all([
      read(team.drift.$get({ param })),
      read(team.sentiment.$get({ param, query: {} })),
    ])
    return { drift: drift.workflows, sentiment: sentiment.workflows, days: sentiment.days }
  })
}
