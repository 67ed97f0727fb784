import { addressOf, api, read } from '../data/client.ts'
import { resource } from '../data/resource.ts'

const { useRead, write } = resource('widgets')

const { widgets } = api.api
const one = widgets[':id']

async function listWidgets(teamId: string) {
  return read(widgets.$get({ query: { teamId } }))
}

export type Widget = Awaited<ReturnType<typeof listWidgets>>[number]

export function useWidgets(teamId: string) {
  return useRead([teamId], () => listWidgets(teamId))
}

export async function createWidget(json: Parameters<typeof widgets.$post>[0]['json']) {
  return write(read(widgets.$post({ json })))
}

export async function updateWidget(id: string, json: Parameters<typeof one.$put>[0]['json']) {
  return write(read(one.$put({ param: { id }, json })))
}

export async function deleteWidget(id: string) {
  return write(read(one.$delete({ param: { id } })))
}

export async function rotateWidgetKey(id: string) {
  return write(read(one['rotate-key'].$post({ param: { id } })))
}

/** What a page needs to show a widget. */
export function writeSnippet(key: string): string {
  return `<script src="${addressOf('/widget.js')}" data-key="${key}"></script>`
}

/** The same as a page in a frame. */
export function writeFrame(key: string): string {
  return `<iframe src="${addressOf(`/widget/${key}`)}" title="Chat" width="400" height="600"></iframe>`
}
