import { api, FRESH_MS, keepRows, read } from '../../data/client.ts'
import { type Data, resource } from '../../data/resource.ts'

const { useRead, write } = resource('channels')
const team = api.api.monitoring.teams[':teamId']
const one = team.channels[':id']

/** What the types of channels are called. */
export const CHANNEL_TYPES = { EMAIL: 'E-mail', SLACK: 'Slack', WEBHOOK: 'Webhook' } as const

export function useChannels(teamId: string) {
  return useRead([teamId], () => read(team.channels.$get({ param: { teamId } })))
}

export type Channel = Data<typeof useChannels>[number]

type NewChannel = Parameters<typeof team.channels.$post>[0]['json']

/** Returns the channel; that of a webhook with its secret, which is not shown again. */
export async function createChannel(teamId: string, json: NewChannel) {
  return write(read(team.channels.$post({ param: { teamId }, json })))
}

export async function updateChannel({ teamId, id }: Channel, json: Parameters<typeof one.$put>[0]['json']) {
  return write(read(one.$put({ param: { teamId, id }, json })))
}

export async function deleteChannel({ teamId, id }: Channel) {
  return write(read(one.$delete({ param: { teamId, id } })))
}

/** Sends one message, and tells what came of it. */
export async function testChannel({ teamId, id }: Channel) {
  return read(one.test.$post({ param: { teamId, id } }))
}

export async function rotateChannelSecret({ teamId, id }: Channel) {
  return read(one['rotate-secret'].$post({ param: { teamId, id } }))
}

/** The deliveries to all channels. */
export function useDeliveries(teamId: string, page: number) {
  const query = { page: String(page), size: '10' }
  return useRead(
    [teamId, 'deliveries', page],
    () => read(team.deliveries.$get({ param: { teamId }, query })),
    { refetchInterval: FRESH_MS * 3, ...keepRows },
  )
}
