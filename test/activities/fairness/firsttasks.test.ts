import { beforeEach, expect, test } from 'vitest'
import { createFirstTasks, type FirstTasks } from '../../../activities/fairness/firsttasks.ts'

let now: number
let used: number
let tasks: FirstTasks

beforeEach(() => {
  now = 1_000_000
  used = 0
  tasks = createFirstTasks(
    8,
    () => used,
    () => now,
  )
})

const queue = (id: string, team = 'a') => {
  tasks.expect(id, team, false)
  tasks.sent(id, false)
}

test('runs start eagerly only while more than a quarter of the slots is free, those on their way included', () => {
  used = 4
  expect(tasks.hasRoom()).toBe(true)
  tasks.expect('1', 'a', true)
  expect(tasks.hasRoom()).toBe(true)
  tasks.expect('2', 'a', true)
  expect(tasks.hasRoom()).toBe(false)
  tasks.sent('1', true)
  expect(tasks.hasRoom()).toBe(false)
  tasks.begun('1', 'a', now)
  expect(tasks.hasRoom()).toBe(true)
  tasks.expect('3', 'a', true)
  tasks.forget('3')
  expect(tasks.hasRoom()).toBe(true)
  used = 5
  expect(tasks.hasRoom()).toBe(false)
  // The server did not start it eagerly, so it takes no slot.
  tasks.sent('2', false)
  expect(tasks.hasRoom()).toBe(true)
})

test('none starts eagerly while a first task has waited in the queue for more than 200 ms', () => {
  queue('1')
  now += 200
  expect(tasks.hasRoom()).toBe(true)
  now += 1
  expect(tasks.hasRoom()).toBe(false)
  tasks.begun('1', 'a', now - 201)
  expect(tasks.hasRoom()).toBe(true)
})

test('one that came eagerly has its slot: it waits for nobody', () => {
  tasks.expect('1', 'a', true)
  tasks.sent('1', true)
  now += 500
  expect(tasks.hasRoom()).toBe(true)
  queue('2')
  now += 201
  expect(tasks.hasRoom()).toBe(false)
})

test('tasks that other workers have taken are forgotten: with a younger one of their team, or after a while', () => {
  queue('1')
  queue('2', 'b')
  now += 10
  queue('3')
  now += 300
  tasks.begun('3', 'a', undefined)
  expect(tasks.hasRoom()).toBe(false)
  tasks.begun('2', 'b', undefined)
  expect(tasks.hasRoom()).toBe(true)
  queue('4')
  now += 9_999
  expect(tasks.hasRoom()).toBe(false)
  now += 1
  expect(tasks.hasRoom()).toBe(true)
})

test('a late first task of a run that another process has started says for a second that others wait', () => {
  tasks.begun('1', 'a', now - 200)
  tasks.begun('2', 'a', undefined)
  expect(tasks.hasRoom()).toBe(true)
  tasks.begun('3', 'a', now - 201)
  expect(tasks.hasRoom()).toBe(false)
  now += 1_000
  expect(tasks.hasRoom()).toBe(true)
})
