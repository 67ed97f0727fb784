import { useQuery } from '@tanstack/react-query'
import { api, FRESH_MS, keepRows, queries, read } from '../../data/client.ts'

const team = api.api.monitoring.teams[':teamId']
const one = team.channels[':id']

/** What the types of channels are called. */
export const CHANNEL_TYPES = { EMAIL: 'E-mail', SLACK: 'Slack', WEBHOOK: 'Webhook' } as const

async function listChannels(teamId: string) {
  return read(team.channels.$get({ param: { teamId } }))
}

export type Channel = Awaited<ReturnType<typeof listChannels>>[number]

export function useChannels(teamId: string) {
  return useQuery({
    queryKey: ['channels', teamId],
    queryFn: () => listChannels(teamId),
    enabled: teamId !== '',
  })
}

type NewChannel = Parameters<typeof team.channels.$post>[0]['json']

/** Returns the channel; that of a webhook with its secret, which is not shown again. */
export async function createChannel(teamId: string, json: NewChannel) {
  return refresh(read(team.channels.$post({ param: { teamId }, json })))
}

export async function updateChannel({ teamId, id }: Channel, json: Parameters<typeof one.$put>[0]['json']) {
  return refresh(read(one.$put({ param: { teamId, id }, json })))
}

export async function deleteChannel({ teamId, id }: Channel) {
  return refresh(read(one.$delete({ param: { teamId, id } })))
}

/** Sends one message, and tells what came of it. */
export async function testChannel({ teamId, id }: Channel) {
  return read(one.test.$post({ param: { teamId, id } }))
}

export async function rotateChannelSecret({ teamId, id }: Channel) {
  return read(one['rotate-secret'].$post({ param: { teamId, id } }))
}

/** What was sent to all channels. */
export function useDeliveries(teamId: string, page: number) {
  const query = { page: String(page), size: '10' }
  return useQuery({
    queryKey: ['channels', teamId, 'deliveries', page],
    queryFn: () => read(team.deliveries.$get({ param: { teamId }, query })),
    enabled: teamId !== '',
    refetchInterval: FRESH_MS * 3,
    ...keepRows,
  })
}

async function refresh<T>(work: Promise<T>): Promise<T> {
  const done = await work
  await queries.invalidateQueries({ queryKey: ['channels'] })
  return done
}
