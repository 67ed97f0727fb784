import { useQuery } from '@tanstack/react-query'
import { api, keepRows, queries, read } from '../../data/client.ts'
import type { Span } from '../data.ts'

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
  return useQuery({
    queryKey: ['monitoring', teamId, 'prices'],
    queryFn: () => readPrices(teamId),
    enabled: teamId !== '',
  })
}

/** Replaces all of them. */
export async function updatePrices(teamId: string, prices: Price[]) {
  const json = { prices } as Parameters<typeof team.prices.$put>[0]['json']
  const changed = await read(team.prices.$put({ param: { teamId }, json }))
  await queries.invalidateQueries({ queryKey: ['monitoring', teamId] })
  return changed
}

/** Which nodes have called models, those that cost most first. */
export function useNodeUsage(teamId: string, span: Span) {
  return useQuery({
    queryKey: ['monitoring', teamId, 'by-node', span],
    queryFn: async () =>
      (await read(team['token-usage']['by-node'].$get({ param: { teamId }, query: span }))).nodes,
    enabled: teamId !== '',
    ...keepRows,
  })
}

/** What agents elsewhere have sent of their work. */
export function useTelemetry(teamId: string, span: Span) {
  return useQuery({
    queryKey: ['monitoring', teamId, 'telemetry', span],
    queryFn: () => read(team.telemetry.$get({ param: { teamId }, query: span })),
    enabled: teamId !== '',
    ...keepRows,
  })
}

/** Whether what workflows work on, and how users sound, is as it was. */
export function useShifts(teamId: string) {
  return useQuery({
    queryKey: ['monitoring', teamId, 'shifts'],
    queryFn: async () => {
      const param = { teamId }
      const [drift, sentiment] = await Promise.all([
        read(team.drift.$get({ param })),
        read(team.sentiment.$get({ param, query: {} })),
      ])
      return { drift: drift.workflows, sentiment: sentiment.workflows, days: sentiment.days }
    },
    enabled: teamId !== '',
  })
}
