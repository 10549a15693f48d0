//! `ArrayPlan`: what reading a selection takes, known before anything is read.

use std::sync::OnceLock;

use hyperslab_core::{PlanTotals, ReadPlan, Request};

use crate::whole_array::WholeArray;

/// The chunks, requests and bytes of one read.
pub struct ArrayPlan {
    whole: WholeArray,
    /// One plan, or one for each group of points.
    plans: Vec<ReadPlan>,
    shape: Vec<u64>,
    /// How many points, if this reads points.
    point_count: Option<u64>,
    /// Computed on first use, which takes as long as listing all requests.
    totals: OnceLock<PlanTotals>,
}

impl ArrayPlan {
    pub(crate) fn new(whole: WholeArray, plan: ReadPlan) -> Self {
        let (shape, point_count) = (plan.shape().to_vec(), None);
        Self { whole, shape, point_count, plans: vec![plan], totals: OnceLock::new() }
    }

    pub(crate) fn of_points(whole: WholeArray, plans: Vec<ReadPlan>, point_count: u64) -> Self {
        let shape = vec![point_count];
        Self { whole, shape, point_count: Some(point_count), plans, totals: OnceLock::new() }
    }

    /// The shape of the output.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The number of elements in the output.
    pub fn element_count(&self) -> u64 {
        self.shape.iter().product()
    }

    /// What the read costs. Computed once.
    pub fn totals(&self) -> &PlanTotals {
        let (array, policy) = (self.whole.array(), self.whole.stores().policy());
        self.totals.get_or_init(|| match (self.point_count, self.plans.as_slice()) {
            (None, [plan]) => plan.totals(array, policy),
            (count, plans) => PlanTotals::of_points(plans, array, count.unwrap_or(0), policy),
        })
    }

    /// The requests, ordered by file and offset.
    pub fn requests(&self) -> Vec<Request> {
        let (array, policy) = (self.whole.array(), self.whole.stores().policy());
        let mut requests: Vec<Request> =
            self.plans.iter().flat_map(|plan| plan.requests(array, policy)).collect();
        requests.sort_unstable();
        requests
    }
}
